"""Ops that reduce or sort rows by segment id: Segment*, UnsortedSegment*, DynamicPartition, (Parallel)DynamicStitch.

Numerics: tensorflow/core/kernels/{segment_reduction_ops_impl.h,dynamic_partition_op.cc,dynamic_stitch_op.cc}
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_int
from oplet_flex_ops.kernel import computed, filled, reserve, zeros
from oplet_flex_ops.signature import INDICES, NUMBERS, REALS, Types

__all__ = ["fold_rows"]


def fold_rows(fold: np.ufunc, rows: Array, ids: Array, target: Array) -> None:
    """Reduce runs of consecutive rows with the same id into `target[id]`; the target's other rows keep their values.

    Args:
        rows: an array of shape (count, size).
        ids: int64, ascending and within the target.
        target: of shape (ids, size) and the rows' type.
    """
    if not len(ids) or not rows.size:
        return
    starts = np.concatenate(([0], (ids[1:] != ids[:-1]).nonzero()[0] + 1))
    half = rows.dtype.itemsize == 2 and rows.dtype.kind not in "iu"
    with np.errstate(all="ignore"):
        # halves are summed as floats
        target[ids[starts]] = fold.reduceat(
            rows.astype(np.float32) if half else rows, starts, 0, dtype=None if half else rows.dtype
        )


def _segments(op: str, fold: np.ufunc, empty: int, types: Types, mean: bool = False) -> Registration:
    def compute(given: Any, data: Array, ids: Array) -> Array:
        ensure(data.ndim >= 1 and len(ids) == len(data), f"{len(ids)} segment_ids do not fit data of shape {list(data.shape)}.")
        whole = ids.astype(np.int64)
        ensure(not len(whole) or (whole[0] >= 0 and (whole[1:] >= whole[:-1]).all()), "segment_ids are not ascending from 0 on.")
        count = int(whole[-1]) + 1 if len(whole) else 0
        output = zeros((count, *data.shape[1:]), data.dtype)
        if empty:
            output.fill(empty)
        size = prod(data.shape[1:])
        flat = output.reshape(count, size)
        fold_rows(fold, data.reshape(len(data), size), whole, flat)
        if mean and count:
            np.divide(flat, np.maximum(np.bincount(whole), 1).astype(data.dtype)[:, None], out=flat)
        return output

    return computed(op, "data: T, segment_ids: Tindices[1] -> output: T", T=types, Tindices=INDICES)(compute)


_MEANS = tuple(type for type in NUMBERS if type.name.startswith(("FLOAT", "BFLOAT", "COMPLEX")))
SEGMENTSUM = _segments("SegmentSum", np.add, 0, NUMBERS)
SEGMENTMEAN = _segments("SegmentMean", np.add, 0, _MEANS, mean=True)
SEGMENTMAX = _segments("SegmentMax", np.maximum, 0, REALS)
SEGMENTMIN = _segments("SegmentMin", np.minimum, 0, REALS)
SEGMENTPROD = _segments("SegmentProd", np.multiply, 1, NUMBERS)


def _extreme(dtype: np.dtype[Any], side: str) -> Any:
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype), side)
    if dtype.kind == "f":
        return getattr(np.finfo(dtype), side)
    import ml_dtypes

    limits: Any = ml_dtypes.finfo
    return getattr(limits(dtype), side)


def _unsorted(op: str, fold: np.ufunc, empty: int | str, types: Types) -> Registration:
    def shapes(node: Node, given: Any) -> list[Shape]:
        data, ids = node.inputs[:2]
        count = read_int(node.inputs[2])
        ensure(count >= 0, f"num_segments is {count} and must not be negative.")
        ensure(data.shape[: ids.ndim] == ids.shape, f"{data} must begin with the axes of the segment_ids {ids}.")
        return [(count, *data.shape[ids.ndim :])]

    def compute(given: Any, outputs: list[Array], data: Array, ids: Array, num: Array) -> None:
        output, flat = outputs[0], ids.reshape(-1).astype(np.int64)
        output.fill(_extreme(data.dtype, empty) if isinstance(empty, str) else empty)
        size, count = prod(data.shape[ids.ndim :]), len(output)
        beyond = flat >= count
        ensure(not beyond.any(), lambda: f"segment id {flat[beyond][0]} is not below num_segments, which is {count}.")
        reserve(data.shape, 2 * data.itemsize)
        order = np.argsort(flat, kind="stable")
        order = order[int(np.count_nonzero(flat < 0)) :]  # negative numbers are those of rows to leave out
        fold_rows(fold, data.reshape(flat.size, size)[order], flat[order], output.reshape(count, size))

    text = "data: T, segment_ids: Tindices, num_segments: Tnumsegments[0]! -> output: T"
    indices = (*INDICES, TensorType.INT16)
    return filled(op, text, shapes, T=types, Tindices=indices, Tnumsegments=INDICES)(compute)


UNSORTEDSEGMENTSUM = _unsorted("UnsortedSegmentSum", np.add, 0, NUMBERS)
UNSORTEDSEGMENTPROD = _unsorted("UnsortedSegmentProd", np.multiply, 1, NUMBERS)
UNSORTEDSEGMENTMAX = _unsorted("UnsortedSegmentMax", np.maximum, "min", REALS)
UNSORTEDSEGMENTMIN = _unsorted("UnsortedSegmentMin", np.minimum, "max", REALS)


def _partition(count: int, data: Array, partitions: Array) -> list[Array]:
    ensure(
        data.shape[: partitions.ndim] == partitions.shape,
        f"data of shape {list(data.shape)} must begin with the axes of partitions, {list(partitions.shape)}.",
    )
    wrong = (partitions < 0) | (partitions >= count)
    ensure(not wrong.any(), lambda: f"partition {partitions[wrong].flat[0]} is not in 0 to {count - 1} (num_partitions).")
    numbers = partitions.reshape(-1)
    rows = data.reshape(numbers.size, *data.shape[partitions.ndim :])
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=count))
    return [rows[part] for part in np.split(order, ends[:-1])]


DYNAMICPARTITION = computed(
    "DynamicPartition",
    "data: T, partitions: INT32 -> outputs: num_partitions*T",
    lambda attributes: attributes.integer("num_partitions", least=1, most=1 << 16),
)(lambda count, data, partitions: _partition(count, data, partitions)[0] if count == 1 else _partition(count, data, partitions))


def _stitch(given: Any, *operands: Array) -> Array:
    count = len(operands) // 2
    indices, data = operands[:count], operands[count:]
    rest = data[0].shape[indices[0].ndim :]
    for index, part in zip(indices, data):
        ensure(
            part.shape == index.shape + rest,
            f"data of shape {list(part.shape)} must have the axes of its indices, {list(index.shape)}, and then {list(rest)}.",
        )
    lowest = min((int(index.min()) for index in indices if index.size), default=0)
    ensure(lowest >= 0, f"index {lowest} is negative.")
    merged = zeros((max((int(index.max()) for index in indices if index.size), default=-1) + 1, *rest), data[0].dtype)
    for index, part in zip(indices, data):
        merged[index.reshape(-1)] = part.reshape(index.size, *rest)
    return merged


DYNAMICSTITCH = computed("DynamicStitch", "indices: N*INT32, data: N*T -> merged: T")(_stitch)
PARALLELDYNAMICSTITCH = computed("ParallelDynamicStitch", "indices: N*INT32, data: N*T -> merged: T")(_stitch)
