"""MATRIX_DIAG: square matrices with the input's rows as their diagonals; MATRIX_SET_DIAG: matrices with their diagonals replaced.

Numerics: tflite/kernels/matrix_diag.cc, tflite/kernels/matrix_set_diag.cc
"""

from __future__ import annotations

from math import prod

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def _prepare_matrix_diag(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source = node.inputs[0]
    ensure_type(source, *_TYPES)
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    context.set_type(node.outputs[0], source.type)
    context.resize_tensor(node.outputs[0], (*source.shape, source.shape[-1]))


def _bind_matrix_diag(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    size = source.shape[-1]
    rows = prod(source.shape[:-1])
    diagonals = output.reshape(rows, size * size)[:, :: size + 1]
    values = source.reshape(rows, size)

    def run() -> None:
        output.fill(0)
        diagonals[...] = values

    return run


_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def _prepare_matrix_set_diag(context: Context, node: Node) -> None:
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


def _bind_matrix_set_diag(context: Context, node: Node) -> Thunk:
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


MATRIX_DIAG = Registration(prepare=_prepare_matrix_diag, bind=_bind_matrix_diag, pure=True, types=_TYPES)
MATRIX_SET_DIAG = Registration(prepare=_prepare_matrix_set_diag, bind=_bind_matrix_set_diag, pure=True, types=_TYPES)
