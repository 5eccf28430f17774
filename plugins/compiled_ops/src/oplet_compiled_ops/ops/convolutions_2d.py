"""CONV_2D and DEPTHWISE_CONV_2D, compiled, with constant weights.

CONV_2D: float32, ungrouped integer convolutions, and hybrid ones (float activations, integer weights) if the processor has byte dot
products; small layers of other kinds. DEPTHWISE_CONV_2D: float32, integers whose sums float32 holds exactly, and small layers of others;
a PAD before it that nothing else reads is fused: its border becomes window padding and is never written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline, ensure
from oplet.kernels.windows import Axis, Windows2D
from oplet.schema.options import Conv2DOptions, DepthwiseConv2DOptions
from oplet_builtin_ops.layers import convolutions_2d as builtin
from oplet_builtin_ops.layers.convolutions_2d import check_convolution, check_depthwise
from oplet_compiled_ops.convolution.depthwise import plan_depthwise
from oplet_compiled_ops.convolution.edges import absorbed_border, border_to_absorb
from oplet_compiled_ops.convolution.output_stage import Finishing, float_finishing, quantized_finishing
from oplet_compiled_ops.convolution.products import plan_quantized_tiles, plan_tiles
from oplet_compiled_ops.library.memory import Array
from oplet_compiled_ops.overriding import Bind, override

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.convolutions_2d import Convolution
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
    from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer
    from oplet_compiled_ops.convolution.direct import Geometry


def _plan_convolution(context: Context, node: Node) -> Bind:
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


def _plan_depthwise(context: Context, node: Node) -> Bind:
    source, weights = node.inputs[:2]
    bias = node.optional_input(2)
    if weights.sparsity is not None:
        decline("its weights are sparse.")
    windows: Windows2D
    windows, _, filters, layer = node.prepared
    _, rows, columns, _ = weights.shape
    finish: Finishing | str = ""
    if layer is None:
        finish = float_finishing(node, bias, filters, node.options(DepthwiseConv2DOptions).fused_activation_function)
    elif source.type is not TensorType.FLOAT32:
        finish = quantized_finishing(layer, False)
    if isinstance(finish, str):
        ensure(not node.absorbed, finish or "its kernel reads no border that is not there.")
        from oplet_compiled_ops.convolution.direct import Geometry, plan_direct_layer  # here, as few models have such layers

        geometry = Geometry(windows.batch, windows.height, windows.width, 1, source.shape[3], filters)
        return plan_direct_layer(context, node, geometry, layer, finish)

    def taps() -> Array:
        values: Array = weights.data[0] if layer is None else layer.rows().T
        return values.reshape(rows, columns, filters)

    pad = 0 if layer is None else source.zero_point
    if node.absorbed:
        border = absorbed_border(node)
        if layer is None:
            finite = node.cached("finite", [weights], lambda: bool(np.isfinite(weights.data).all()))
            ensure(finite, "its weights are not finite, so that a border of zeros is not without effect.")
        windows = border.around(windows)
        source = border.source
    return plan_depthwise(context, node, source, windows, filters // source.shape[3], taps, finish, float(pad))


_LIMITS = NodeLimits(constant=[1, 2])
CONV_2D = override(builtin.CONV_2D, _plan_convolution, _LIMITS, check=check_convolution)
DEPTHWISE_CONV_2D = override(builtin.DEPTHWISE_CONV_2D, _plan_depthwise, _LIMITS, fuses=border_to_absorb, check=check_depthwise)
