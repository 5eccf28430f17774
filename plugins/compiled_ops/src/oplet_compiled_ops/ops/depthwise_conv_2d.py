"""DEPTHWISE_CONV_2D, compiled, with constant weights: float32, integers whose sums float32 holds exactly, and small layers of others.

A PAD before it that nothing else reads is fused: its border becomes window padding and is never written.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline, ensure
from oplet.kernels.windows import Windows2D
from oplet.schema.options import DepthwiseConv2DOptions
from oplet_builtin_ops.layers.checked_depthwise import check_depthwise
from oplet_builtin_ops.ops.depthwise_conv_2d import REGISTRATION as BUILTIN
from oplet_compiled_ops.convolution.depthwise import plan_depthwise
from oplet_compiled_ops.convolution.edges import absorbed_border, border_to_absorb
from oplet_compiled_ops.convolution.output_stage import Finishing, float_finishing, quantized_finishing
from oplet_compiled_ops.library.memory import Array
from oplet_compiled_ops.overriding import Bind, override


def plan(context: Context, node: Node) -> Bind:
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


REGISTRATION = override(BUILTIN, plan, NodeLimits(constant=[1, 2]), fuses=border_to_absorb, check=check_depthwise)
