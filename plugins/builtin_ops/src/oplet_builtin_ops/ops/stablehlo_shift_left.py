"""STABLEHLO_SHIFT_LEFT: elementwise left shift; by the type's bits or more it gives 0.

Numerics: tflite/kernels/stablehlo_shift_left.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_shape, ensure_same_type
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    values, amounts = node.inputs
    ensure_type(values, TensorType.INT8, TensorType.INT16, TensorType.INT32)
    ensure_same_type(values, amounts)
    ensure_same_shape(values, amounts)
    context.set_type(node.outputs[0], values.type)
    context.resize_tensor(node.outputs[0], values.shape)


def bind(context: Context, node: Node) -> Thunk:
    return quietly(np.left_shift, node.inputs[0].data, node.inputs[1].data, node.outputs[0].data)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.INT8, TensorType.INT16, TensorType.INT32),
    differences="shifts by 32 or more, or by a negative amount, leave zero; LiteRT's answer depends on the length of the tensor",
)
