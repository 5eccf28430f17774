"""SparseSegmentSum, Mean and SqrtN: rows selected by indices, reduced by ascending segment ids; each also WithNumSegments.

Numerics: tensorflow/core/kernels/segment_reduction_ops_impl.h
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from oplet import Registration, ensure
from oplet.kernels.arrays import Array
from oplet_flex_ops.kernel import computed, zeros
from oplet_flex_ops.ops.arrays.segments import fold_rows
from oplet_flex_ops.positions import checked
from oplet_flex_ops.signature import FLOATS, INDICES, REALS, Signature


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
    signature = Signature(op, f"{text} -> output: T", T=types, Tidx=INDICES, Tsegmentids=INDICES, Tnumsegments=INDICES)
    return computed(signature, compute)


def _count(counts: Array) -> Array:
    return counts


SPARSESEGMENTSUM: Registration = _segments("SparseSegmentSum")
SPARSESEGMENTMEAN: Registration = _segments("SparseSegmentMean", _count)
SPARSESEGMENTSQRTN: Registration = _segments("SparseSegmentSqrtN", np.sqrt)
SPARSESEGMENTSUMWITHNUMSEGMENTS: Registration = _segments("SparseSegmentSumWithNumSegments")
SPARSESEGMENTMEANWITHNUMSEGMENTS: Registration = _segments("SparseSegmentMeanWithNumSegments", _count)
SPARSESEGMENTSQRTNWITHNUMSEGMENTS: Registration = _segments("SparseSegmentSqrtNWithNumSegments", np.sqrt)
