"""TRANSPOSE_CONV, compiled: small layers with constant weights (float, integer, hybrid); large float ones without overlap (stride
= kernel).
"""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, decline
from oplet.schema.options import TransposeConvOptions
from oplet_builtin_ops.ops.transpose_conv import REGISTRATION as BUILTIN
from oplet_compiled_ops.convolution.direct import Geometry, plan_direct, plan_direct_layer
from oplet_compiled_ops.convolution.products import plan_stamps
from oplet_compiled_ops.overriding import Bind, override


def plan(context: Context, node: Node) -> Bind:
    weights, bias = node.inputs[1], node.optional_input(3)
    layer, scatter, _ = node.prepared
    if scatter is None:
        decline("its output's shape is not known yet.")
    if weights.sparsity is not None:
        decline("its weights are sparse.")
    filters, windows = weights.shape[0], scatter.windows
    geometry = Geometry(windows.batch, windows.height, windows.width, scatter.depth, 1, filters, transposed=True)
    if layer is not None:
        return plan_direct_layer(context, node, geometry, layer)
    activation = node.options(TransposeConvOptions).fused_activation_function
    axes = windows.height, windows.width
    if not geometry.is_small and all(axis.stride == axis.filter and axis.size == axis.out * axis.filter for axis in axes):
        return plan_stamps(context, node, node.inputs[2], bias, activation)
    return plan_direct(context, node, geometry, lambda: weights.data.reshape(filters, -1), bias, activation)


REGISTRATION = override(BUILTIN, plan, NodeLimits(constant=[1, 3]))
