"""CONV_2D, compiled, with constant weights: float32, ungrouped integer convolutions, and hybrid ones (float activations, integer
weights) if the processor has byte dot products; small layers of other kinds.
"""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, decline
from oplet.kernels.windows import Axis
from oplet.schema.options import Conv2DOptions
from oplet_builtin_ops.kit.convolutions import Convolution, check_convolution
from oplet_builtin_ops.kit.layers import HybridLayer, QuantizedLayer
from oplet_builtin_ops.ops.conv_2d import REGISTRATION as BUILTIN
from oplet_compiled_ops.convolution.direct import Geometry, plan_direct, plan_direct_layer
from oplet_compiled_ops.convolution.hybrid import multiplies_bytes, plan_scaled_tiles
from oplet_compiled_ops.convolution.output_stage import float_finishing
from oplet_compiled_ops.convolution.products import plan_quantized_tiles, plan_tiles
from oplet_compiled_ops.overriding import Bind, override


def plan(context: Context, node: Node) -> Bind:
    source, weights = node.inputs[:2]
    bias = node.optional_input(2)
    convolution: Convolution = node.prepared
    windows, groups, filters, layer = convolution
    if layer is None:
        if weights.sparsity is not None:
            decline("its weights are sparse.")
        activation = node.options(Conv2DOptions).fused_activation_function
        rows = lambda: weights.data.reshape(filters, -1)  # noqa: E731
        if groups != 1:
            return plan_direct(context, node, _geometry(convolution), rows, bias, activation)
        return plan_tiles(context, node, windows, filters, rows, lambda: float_finishing(node, bias, filters, activation))
    if isinstance(layer, HybridLayer) and groups == 1 and multiplies_bytes(layer):
        return plan_scaled_tiles(context, node, windows, layer)
    if not isinstance(layer, QuantizedLayer) or groups != 1:
        geometry = _geometry(convolution)
        if isinstance(layer, HybridLayer) and layer.batches > source.shape[0]:  # each pixel is quantized by itself
            single = Axis(1, 1, 1, 1, 1, 0)
            geometry = Geometry(layer.batches, single, single, source.shape[3], 1, filters)
        return plan_direct_layer(context, node, geometry, layer)
    return plan_quantized_tiles(context, node, windows, layer, source.zero_point)


def _geometry(convolution: Convolution) -> Geometry:
    windows, groups, filters, _ = convolution
    return Geometry(windows.batch, windows.height, windows.width, windows.channels // groups, groups, filters)


REGISTRATION = override(BUILTIN, plan, NodeLimits(constant=[1, 2]), check=check_convolution)
