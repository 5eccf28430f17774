"""CONV_2D, compiled, with constant weights: float32, ungrouped integer convolutions, and hybrid ones (float activations, integer
weights) if the processor has byte dot products; small layers of other kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.kernels.windows import Axis
from oplet.schema.options import Conv2DOptions
from oplet_builtin_ops.layers.checked_convolution import check_convolution
from oplet_builtin_ops.ops.conv_2d import REGISTRATION as BUILTIN
from oplet_compiled_ops.convolution.output_stage import float_finishing
from oplet_compiled_ops.convolution.products import plan_quantized_tiles, plan_tiles
from oplet_compiled_ops.overriding import Bind, override

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.checked_convolution import Convolution
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
    from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer
    from oplet_compiled_ops.convolution.direct import Geometry


def plan(context: Context, node: Node) -> Bind:
    source = node.inputs[0]
    convolution: Convolution = node.prepared
    layer: Any = convolution.layer
    if layer is None:
        return _plan_floats(context, node, convolution)
    if source.type is not TensorType.FLOAT32 and convolution.groups == 1:
        return plan_quantized_tiles(context, node, convolution.windows, layer, source.zero_point)
    return _plan_others(context, node, convolution, layer)


def _plan_floats(context: Context, node: Node, convolution: Convolution) -> Bind:
    weights, bias = node.inputs[1], node.optional_input(2)
    if weights.sparsity is not None:
        decline("its weights are sparse.")
    activation = node.options(Conv2DOptions).fused_activation_function
    windows, groups, filters, _ = convolution
    rows = lambda: weights.data.reshape(filters, -1)  # noqa: E731
    if groups != 1:
        from oplet_compiled_ops.convolution.direct import plan_direct

        return plan_direct(context, node, _geometry(convolution), rows, bias, activation)
    return plan_tiles(context, node, windows, filters, rows, lambda: float_finishing(node, bias, filters, activation))


def _plan_others(context: Context, node: Node, convolution: Convolution, layer: QuantizedLayer | HybridLayer) -> Bind:
    """Plan a hybrid layer, or one of several groups."""
    # Imported here, as many models have none of them.
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
    from oplet_compiled_ops.convolution.direct import Geometry, plan_direct_layer

    geometry = _geometry(convolution)
    if isinstance(layer, HybridLayer):
        from oplet_compiled_ops.convolution.hybrid import multiplies_bytes, plan_scaled_tiles

        if convolution.groups == 1 and multiplies_bytes(layer):
            return plan_scaled_tiles(context, node, convolution.windows, layer)
        batch, *_, channels = node.inputs[0].shape
        if layer.batches > batch:  # each pixel is quantized by itself
            single = Axis(1, 1, 1, 1, 1, 0)
            geometry = Geometry(layer.batches, single, single, channels, 1, convolution.filters)
    return plan_direct_layer(context, node, geometry, layer)


def _geometry(convolution: Convolution) -> Geometry:
    from oplet_compiled_ops.convolution.direct import Geometry

    windows, groups, filters, _ = convolution
    return Geometry(windows.batch, windows.height, windows.width, windows.channels // groups, groups, filters)


REGISTRATION = override(BUILTIN, plan, NodeLimits(constant=[1, 2]), check=check_convolution)
