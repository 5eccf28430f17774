"""SEGMENT_SUM and UNSORTED_SEGMENT_*: rows with the same id, combined.

Numerics: tflite/kernels/segment_sum.cc, tflite/kernels/unsorted_segment.cc
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure, ensure_fits, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import read_int
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_builtin_ops.shaping.reduction import highest, lowest

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["combined", "grouped"]

#: The value of a segment without rows, from the type of the rows.
Initial = Callable[["np.dtype[np.generic]"], float]


class Groups(NamedTuple):
    """Rows sorted by segment id: their order, the start of each group of equal ids, and each group's id."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    ids: NDArray[np.signedinteger[Any]]


def grouped(ids: Array) -> Groups:
    """Sort rows by segment id and group equal ids; rows with negative ids are left out."""
    short = ids.astype(np.int16)  # numpy sorts int16 many times faster
    order = np.argsort(short if (short == ids).all() else ids, kind="stable")
    order = order[np.searchsorted(ids, 0, sorter=order) :]
    present = ids[order]
    begins = np.ones(len(present), np.bool_)
    np.not_equal(present[1:], present[:-1], begins[1:])
    starts = np.flatnonzero(begins)
    return Groups(order, starts, present[starts])


_TYPES = (TensorType.INT32, TensorType.FLOAT32)
#: From so many rows in a group on, a call for each group is faster than `reduceat`, whose inner loops are slow.
_LONG = 16


def combined(combine: np.ufunc, rows: Array, groups: Groups) -> Array:
    """Reduce the rows of each group to one row, in the rows' type and order."""
    if not rows.size or not groups.ids.size:
        return np.zeros((groups.ids.size, rows.shape[1]), rows.dtype)
    ordered: Array = rows.take(groups.order, 0)
    if len(ordered) < _LONG * groups.ids.size:
        folded: Array = combine.reduceat(ordered, groups.starts, 0, rows.dtype)
        return folded
    folded = np.empty((groups.ids.size, rows.shape[1]), rows.dtype)
    starts = groups.starts.tolist()
    for number, (into, start, end) in enumerate(zip(folded, starts, [*starts[1:], len(ordered)])):
        if not number & 0xFF:
            checkpoint()
        combine.reduce(ordered[start:end], 0, rows.dtype, into)
    return folded


def _prepare(context: Context, node: Node, inputs: int, shapes: Callable[[Node], list[Shape]]) -> None:
    ensure_operands(node, inputs)
    source = node.inputs[0]
    ensure_type(source, *_TYPES)
    for tensor in node.inputs[1:]:
        ensure_type(tensor, TensorType.INT32)
    context.set_type(node.outputs[0], source.type)
    defer_or_resize(context, node, node.inputs[1:], shapes)


def segment_reduction() -> Registration:
    """Build the registration of SEGMENT_SUM, whose ids increase by steps of at most one."""
    return _registration(2, _sorted_shapes, np.add, lambda dtype: 0)


def unsorted_segment_reduction(combine: np.ufunc, initial: Initial) -> Registration:
    """Build an UNSORTED_SEGMENT_* registration: ids in any order, negative ones skipped; a third input is the number of segments."""
    return _registration(3, _unsorted_shapes, combine, initial)


def _registration(inputs: int, shapes: Callable[[Node], list[Shape]], combine: np.ufunc, initial: Initial) -> Registration:
    def prepare(context: Context, node: Node) -> None:
        _prepare(context, node, inputs, shapes)

    def bind(context: Context, node: Node) -> Thunk:
        return defer_or_run(context, node, shapes, lambda node: _bind(node, combine, initial), node.inputs[1:])

    return Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)


def _sorted_shapes(node: Node) -> list[Shape]:
    source, ids = node.inputs
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    ensure_fits(ids.shape == source.shape[:1], f"{ids} must be a vector of {source.shape[0]} ids, one per row of {source}.")
    charge(40 * ids.size)
    values = ids.data.astype(np.int64)
    steps = np.diff(values, prepend=-1)
    wrong = np.flatnonzero((steps < 0) | (steps > 1) | ((np.arange(steps.size) == 0) & (steps != 1)))
    if wrong.size:
        at = int(wrong[0])
        before = f" after {values[at - 1]}" if at else ""
        ensure_fits(False, f"segment ids start at 0 and rise by at most 1; number {at} is {values[at]}{before}.")
    return [((int(values[-1]) + 1 if values.size else 0), *source.shape[1:])]


def _unsorted_shapes(node: Node) -> list[Shape]:
    source, ids, segments = node.inputs
    ensure(ids.shape == source.shape[: ids.ndim], f"the shape of {ids} must be how the shape of {source} begins.")
    ensure(segments.shape in ((), (1,)), f"{segments} must be one value, the number of segments.")
    count = read_int(segments)
    ensure(count >= 0, f"the number of segments is {count} and must not be negative.")
    highest = int(ids.data.max()) if ids.size else -1
    ensure(
        highest < count,
        lambda: f"segment id {highest} (number {_position(ids.data, highest)}) is not below {count}, the number of segments.",
    )
    return [(count, *source.shape[ids.ndim :])]


def _position(values: Array, wanted: int) -> int:
    return int((values.ravel() == wanted).argmax()) if values.size else 0


def _bind(node: Node, combine: np.ufunc, initial: Initial) -> Thunk:
    source, ids, output = node.inputs[0].data, node.inputs[1].data.ravel(), node.outputs[0].data
    rows = source.reshape(ids.size, prod(output.shape[1:]))
    segments = output.reshape(len(output), rows.shape[1])
    start = np.array(initial(output.dtype), output.dtype)
    charge((24 + source.dtype.itemsize) * ids.size)  # the order of the rows, and copies of their values
    # Valid as long as the ids do not change: if they are not constant, each run binds again.
    if rows.shape[1] == 1:
        used = np.flatnonzero(ids >= 0)
        places, values, flat = ids[used], rows.reshape(-1), segments.reshape(-1)

        def run_values() -> None:
            flat[...] = start
            combine.at(flat, places, values[used])

        return run_values
    groups = grouped(ids)

    def run() -> None:
        segments[...] = start
        segments[groups.ids] = combine(combined(combine, rows, groups), start)

    return run


SEGMENT_SUM = segment_reduction()
UNSORTED_SEGMENT_SUM = unsorted_segment_reduction(np.add, lambda dtype: 0)
UNSORTED_SEGMENT_PROD = unsorted_segment_reduction(np.multiply, lambda dtype: 1)
# fmax and fmin, as LiteRT's comparisons ignore NaN.
UNSORTED_SEGMENT_MAX = unsorted_segment_reduction(np.fmax, lowest)
UNSORTED_SEGMENT_MIN = unsorted_segment_reduction(np.fmin, highest)
