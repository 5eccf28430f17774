"""MATRIX_SET_DIAG: matrices with their diagonals replaced. Numerics: tflite/kernels/matrix_set_diag.cc"""

from __future__ import annotations

from math import prod

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, diagonal = node.inputs
    ensure_type(source, *_TYPES)
    ensure_same_type(source, diagonal)
    ensure(source.ndim >= 2, f"{source} must have at least two dimensions.")
    context.set_type(node.outputs[0], source.type)
    context.resize_tensor(node.outputs[0], source.shape)


def _ensure_fit(node: Node) -> None:
    source, diagonal = node.inputs
    wanted = (*source.shape[:-2], min(source.shape[-2:]))
    ensure(
        diagonal.shape == wanted,
        lambda: f"{diagonal} must have shape {list(wanted)}, a diagonal for each matrix of {source}.",
    )


def bind(context: Context, node: Node) -> Thunk:
    _ensure_fit(node)
    source, values, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    rows, columns = source.shape[-2:]
    length = min(rows, columns)
    matrices = output.reshape(prod(source.shape[:-2]), rows * columns)
    diagonals = matrices[:, : length * (columns + 1) : columns + 1]
    new = values.reshape(-1, length) if values.size else values.reshape(diagonals.shape)

    def run() -> None:
        output[...] = source
        diagonals[...] = new

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
