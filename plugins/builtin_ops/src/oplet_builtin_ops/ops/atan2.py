"""ATAN2: the angle of the point (second input, first input). Numerics: tflite/kernels/atan2.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type

TYPES = (TensorType.FLOAT32, TensorType.FLOAT64, TensorType.FLOAT16, TensorType.BFLOAT16)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    y, x = node.inputs
    ensure_type(y, *TYPES)
    ensure_same_type(y, x)
    ensure_same_type(y, node.outputs[0])
    ensure(y.shape == x.shape, f"{y} and {x} must have the same shape.")
    context.resize_tensor(node.outputs[0], y.shape)


def bind(context: Context, node: Node) -> Thunk:
    y, x = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data

    def run() -> None:
        np.arctan2(y, x, output)

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=TYPES,
    differences="refuses inputs of different shapes, of which LiteRT compares the ranks only",
)
