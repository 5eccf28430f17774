"""MATRIX_DIAG: square matrices with the input's rows as their diagonals. Numerics: tflite/kernels/matrix_diag.cc"""

from __future__ import annotations

from math import prod

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source = node.inputs[0]
    ensure_type(source, *_TYPES)
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    context.set_type(node.outputs[0], source.type)
    context.resize_tensor(node.outputs[0], (*source.shape, source.shape[-1]))


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    size = source.shape[-1]
    rows = prod(source.shape[:-1])
    diagonals = output.reshape(rows, size * size)[:, :: size + 1]
    values = source.reshape(rows, size)

    def run() -> None:
        output.fill(0)
        diagonals[...] = values

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
