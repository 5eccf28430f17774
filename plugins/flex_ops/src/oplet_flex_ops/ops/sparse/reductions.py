"""Sparse reductions: SparseReduceSum, SparseReduceMax, with dense or sparse result, and SparseSoftmax.

Numerics: tensorflow/core/kernels/{sparse_reduce_op.cc,sparse_softmax_op.cc}

SparseSegmentSum, Mean and SqrtN: rows selected by indices, reduced by ascending segment ids; each also WithNumSegments.

Numerics: tensorflow/core/kernels/segment_reduction_ops_impl.h
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from oplet import Registration, TensorType, ensure
from oplet.kernels.arrays import Array
from oplet.kernels.axes import resolve_axis
from oplet_flex_ops.kernel import computed, zeros
from oplet_flex_ops.ops.arrays.segments import fold_rows
from oplet_flex_ops.ops.sparse.coordinates import coordinates, vectors
from oplet_flex_ops.positions import checked, row_numbers
from oplet_flex_ops.signature import FLOATS, INDICES, NUMBERS, REALS, Types


def _grouped(places: Array, values: Array, fold: np.ufunc) -> tuple[Array, Array]:
    """Group values by position; return the distinct positions, ascending, and each group's reduction by `fold`."""
    if not places.size:
        return places, values
    order = np.argsort(places, kind="stable")
    there = places[order]
    starts = np.concatenate(([0], (there[1:] != there[:-1]).nonzero()[0] + 1))
    with np.errstate(all="ignore"):
        return there[starts], fold.reduceat(values[order], starts)


def _reduce(op: str, fold: np.ufunc, types: Types, sparse: bool) -> Registration:
    def compute(keep: bool, indices: Array, values: Array, shape: Array, axes: Array) -> Any:
        sizes = coordinates(indices, values, shape).shape
        ensure(axes.ndim <= 1, "the reduction axes must be a scalar or a vector.")
        reduced = {resolve_axis(axis, len(sizes)) for axis in axes.reshape(-1).tolist()}
        left = [axis for axis in range(len(sizes)) if axis not in reduced]
        inner = tuple(sizes[axis] for axis in left)
        places, folded = _grouped(row_numbers(indices[:, left], inner), values, fold)
        whole = tuple(1 if axis in reduced else size for axis, size in enumerate(sizes)) if keep else inner
        if sparse:
            return [vectors(places, whole), folded, np.array(whole, np.int64)]
        dense = zeros(whole, values.dtype)
        dense.reshape(-1)[places] = folded
        return dense

    results = "output_indices: INT64, output_values: T, output_shape: INT64" if sparse else "output: T"
    text = f"input_indices: INT64[2], input_values: T[1], input_shape: INT64[1], reduction_axes: INT32 -> {results}"
    return computed(op, text, lambda attributes: attributes.flag("keep_dims", default=False), T=types)(compute)


SPARSEREDUCESUM = _reduce("SparseReduceSum", np.add, NUMBERS, False)
SPARSEREDUCEMAX = _reduce("SparseReduceMax", np.maximum, REALS, False)
SPARSEREDUCESUMSPARSE = _reduce("SparseReduceSumSparse", np.add, NUMBERS, True)
SPARSEREDUCEMAXSPARSE = _reduce("SparseReduceMaxSparse", np.maximum, REALS, True)


@computed(
    "SparseSoftmax",
    "sp_indices: INT64[2], sp_values: T[1], sp_shape: INT64[1] -> output: T",
    T=(TensorType.FLOAT32, TensorType.FLOAT64, TensorType.FLOAT16),
)
def SPARSESOFTMAX(given: Any, indices: Array, values: Array, shape: Array) -> Array:
    sizes = coordinates(indices, values, shape).shape
    ensure(len(sizes) >= 2, f"the sparse tensor has {len(sizes)} axes; a softmax takes 2 or more.")
    found = np.empty_like(values)
    rows = row_numbers(indices[:, :-1], sizes[:-1])
    order = np.argsort(rows, kind="stable")
    numbers = np.cumsum(np.concatenate(([False], rows[order][1:] != rows[order][:-1]))) if rows.size else rows
    _, highest = _grouped(rows, values, np.maximum)
    with np.errstate(all="ignore"):
        powers = np.exp(values[order] - highest[numbers])
        _, totals = _grouped(numbers, powers, np.add)
        found[order] = powers / totals[numbers]
    return found


def _segments(op: str, share: Any = None) -> Registration:
    """Build a sparse segment op; `share` maps a segment's row count to the divisor of its sum, None for plain sums."""
    bounded = op.endswith("WithNumSegments")

    def compute(given: Any, data: Array, indices: Array, ids: Array, *count: Array) -> Array:
        ensure(data.ndim >= 1 and indices.shape == ids.shape, f"{indices.size} indices do not fit {ids.size} segment_ids.")
        numbers = ids.astype(np.int64)
        ensure(
            not numbers.size or (numbers[0] >= 0 and bool((numbers[1:] >= numbers[:-1]).all())),
            "segment_ids are not ascending from 0 on.",
        )
        last = int(numbers[-1]) + 1 if numbers.size else 0
        segments = int(count[0]) if count else last
        ensure(segments >= last, f"num_segments is {segments}, but there is a segment {last - 1}.")
        rows = data[checked(indices, len(data))].reshape(indices.size, prod(data.shape[1:]))
        output = zeros((segments, *data.shape[1:]), data.dtype)
        flat = output.reshape(segments, prod(data.shape[1:]))
        fold_rows(np.add, rows, numbers, flat)
        if share is not None and segments:
            parts = share(np.maximum(np.bincount(numbers, minlength=segments), 1)).astype(data.dtype)
            np.divide(flat, parts[:, None], out=flat)
        return output

    text = "data: T, indices: Tidx[1], segment_ids: Tsegmentids[1]" + (", num_segments: Tnumsegments[0]" if bounded else "")
    types = REALS if share is None else FLOATS
    return computed(op, f"{text} -> output: T", T=types, Tidx=INDICES, Tsegmentids=INDICES, Tnumsegments=INDICES)(compute)


def _count(counts: Array) -> Array:
    return counts


SPARSESEGMENTSUM = _segments("SparseSegmentSum")
SPARSESEGMENTMEAN = _segments("SparseSegmentMean", _count)
SPARSESEGMENTSQRTN = _segments("SparseSegmentSqrtN", np.sqrt)
SPARSESEGMENTSUMWITHNUMSEGMENTS = _segments("SparseSegmentSumWithNumSegments")
SPARSESEGMENTMEANWITHNUMSEGMENTS = _segments("SparseSegmentMeanWithNumSegments", _count)
SPARSESEGMENTSQRTNWITHNUMSEGMENTS = _segments("SparseSegmentSqrtNWithNumSegments", np.sqrt)
