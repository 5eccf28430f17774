"""STABLEHLO_SHIFT_LEFT: bits moved up, value by value.

StableHLO wants zero where as many bits as there are, or more, are shifted out; LiteRT, and so this kernel, takes the amount modulo 32.

Numerics: tflite/kernels/stablehlo_shift_left.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet_builtin_ops.shapes import Array, Thunk, ensure_operands, ensure_same_type
from oplet_builtin_ops.stablehlo_elementwise import ensure_same_shape, quietly


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    values, amounts = node.inputs
    ensure_type(values, TensorType.INT8, TensorType.INT16, TensorType.INT32)
    ensure_same_type(values, amounts)
    ensure_same_shape(values, amounts)
    context.set_type(node.outputs[0], values.type)
    context.resize_tensor(node.outputs[0], values.shape)


def _shift(values: Array, amounts: Array, target: Array) -> None:
    np.left_shift(values, amounts & amounts.dtype.type(31), target)


def bind(context: Context, node: Node) -> Thunk:
    return quietly(_shift, node.inputs[0].data, node.inputs[1].data, node.outputs[0].data)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.INT8, TensorType.INT16, TensorType.INT32))
