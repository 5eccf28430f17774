"""TOPK_V2: the k largest values of each row, largest first, and where they were; the first of equals goes first.

Numerics: tflite/kernels/topk_v2.cc
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet_builtin_ops.shapes import (
    Array,
    Shape,
    Thunk,
    defer_or_resize,
    defer_or_run,
    ensure_operands,
    ensure_same_type,
    read_int,
)

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)
#: From this length of a row it pays to look for the k-th value before sorting.
_LONG = 512


def _shapes(node: Node) -> list[Shape]:
    source, k = node.inputs[0], read_int(node.inputs[1])
    length = source.shape[-1]
    ensure(0 <= k <= length, f"k is {k}; it must not be negative, nor beyond {length}, the length of the last axis of {source}.")
    ensure(
        node.outputs[1].type != TensorType.INT16 or length <= 2**15,
        f"{source} has rows of {length} values, whose positions {node.outputs[1]} cannot hold.",
    )
    return [(*source.shape[:-1], k)] * 2


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 2)
    source, k = node.inputs
    values, positions = node.outputs
    ensure_type(source, *_TYPES)
    ensure_same_type(source, values)
    ensure_type(k, TensorType.INT32, TensorType.INT16)
    ensure_type(positions, TensorType.INT32, TensorType.INT16)
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    defer_or_resize(context, node, [k], _shapes)


def _first(keys: Array, k: int) -> NDArray[np.intp]:
    """The positions of the k smallest keys of one row, in order, equal ones as they come; NaN is largest."""
    near = np.flatnonzero(keys <= np.partition(keys, k - 1)[k - 1])
    if len(near) < k:  # the k-th is NaN
        near = np.arange(len(keys))
    order: NDArray[np.intp] = near[np.argsort(keys[near], kind="stable")[:k]]
    return order


def _bind(node: Node) -> Thunk:
    source, values, positions = node.inputs[0].data, node.outputs[0].data, node.outputs[1].data
    k, length = values.shape[-1], source.shape[-1]
    if not values.size:
        return lambda: None
    rows = source.reshape(-1, length)
    best, where = values.reshape(-1, k), positions.reshape(-1, k)
    # Both turn the order around; a sign would overflow.
    turn = np.negative if source.dtype.kind == "f" else np.invert
    search = length >= _LONG and k * 8 <= length

    def run() -> None:
        keys = turn(rows)
        if search:
            for row, key in enumerate(keys):
                where[row] = _first(key, k)
        else:
            where[...] = np.argsort(keys, -1, "stable")[:, :k]
        best[...] = np.take_along_axis(rows, where.astype(np.intp), 1)

    return run


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
