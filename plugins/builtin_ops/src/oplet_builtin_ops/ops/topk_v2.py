"""TOPK_V2: the k largest values of each row in descending order, and their positions; of equal values the first comes first.

Numerics: tflite/kernels/topk_v2.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_fits, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import read_int
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run

#: Bytes of scratch per value of a sort.
_SCRATCH = 16
#: The most values for which Python's sort is faster.
_FEW = 128
_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def _shapes(node: Node) -> list[Shape]:
    source, k = node.inputs[0], read_int(node.inputs[1])
    length = source.shape[-1]
    ensure_fits(
        0 <= k <= length, f"k is {k}; it must not be negative, nor beyond {length}, the length of the last axis of {source}."
    )
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


def _rank(rows: Array) -> Array:
    """Map the values (not NaN) to integers of reversed order, so that an ascending sort puts the largest first."""
    if rows.dtype.kind != "f":
        return np.invert(rows)  # the negative of the lowest integer would overflow
    # A float's bits as an integer have the order of the floats, if those of negative ones are flipped. There is no -0 after this.
    bits: Array = np.subtract(np.float32(0), rows).view(np.int32)
    bits ^= (bits >> np.int32(31)) & np.int32(0x7FFFFFFF)
    return bits


def _bind(node: Node) -> Thunk:
    source, values, positions = node.inputs[0].data, node.outputs[0].data, node.outputs[1].data
    k, length = values.shape[-1], source.shape[-1]
    if not values.size:
        return lambda: None
    rows = source.reshape(-1, length)
    best, where = values.reshape(-1, k), positions.reshape(-1, k)
    floats, wide = source.dtype.kind == "f", source.dtype.itemsize > 4
    numbers = np.arange(length)

    def first() -> NDArray[np.signedinteger[Any]]:
        narrow = rows.astype(np.int32) if wide else rows
        if (wide and (narrow != rows).any()) or (floats and np.isnan(np.maximum.reduce(rows, None))):
            return np.argsort(np.negative(rows) if floats else np.invert(rows), -1, "stable")[:, :k]
        # Value and position in one integer: all are different, so that the sort need not be stable.
        keys = _rank(narrow).astype(np.int64)
        keys <<= 32
        keys |= numbers
        if k < length:
            keys.partition(k - 1, -1)
        return np.sort(keys[:, :k], -1) & 0xFFFFFFFF

    def few() -> bool:
        """Sort a few values in Python; return False if any is NaN."""
        lists = rows.tolist()
        total = sum(map(sum, lists))
        if total != total:
            return False
        orders = [sorted(numbered, key=row.__getitem__, reverse=True)[:k] for row in lists]
        where[...] = orders
        best[...] = [[row[number] for number in order] for row, order in zip(lists, orders)]
        return True

    numbered = range(length)
    is_few = rows.size <= _FEW

    def run() -> None:
        if is_few and few():
            return
        charge(_SCRATCH * rows.size)
        chosen = first()
        where[...] = chosen
        best[...] = np.take_along_axis(rows, chosen, 1)

    return run


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:])


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=_TYPES,
    differences="refuses a negative k, for which LiteRT gives nothing",
)
