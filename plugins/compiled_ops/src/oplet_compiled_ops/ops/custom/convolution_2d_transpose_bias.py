"""Convolution2DTransposeBias, compiled: with constant weights and without overlap (stride = kernel)."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_compiled_ops.convolution.products import plan_stamps
from oplet_compiled_ops.overriding import Bind, override
from oplet_mediapipe_ops.ops.convolution_2d_transpose_bias import REGISTRATION as BUILTIN


def plan(context: Context, node: Node) -> Bind:
    source, weights, bias = node.inputs
    strides, _ = node.prepared
    window, sizes = weights.shape[1:3], tuple(stride * size for stride, size in zip(strides, source.shape[1:3]))
    if strides != window or node.outputs[0].shape[1:3] != sizes:
        decline("its windows overlap, or leave room between them.")
    return plan_stamps(context, node, source, bias)


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]] * 3, constant=[1, 2]))
