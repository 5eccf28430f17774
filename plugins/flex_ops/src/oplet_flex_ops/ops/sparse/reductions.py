"""Sparse reductions: SparseReduceSum, SparseReduceMax, with dense or sparse result, and SparseSoftmax.

Numerics: tensorflow/core/kernels/{sparse_reduce_op.cc,sparse_softmax_op.cc}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Registration, TensorType, ensure
from oplet.kernels.arrays import Array
from oplet.kernels.axes import resolve_axis
from oplet_flex_ops.kernel import computed, zeros
from oplet_flex_ops.ops.sparse.coordinates import coordinates, vectors
from oplet_flex_ops.positions import row_numbers
from oplet_flex_ops.signature import NUMBERS, REALS, Signature, Types


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
    return computed(
        Signature(op, text, T=types), compute, settings=lambda attributes: attributes.flag("keep_dims", default=False)
    )


SPARSEREDUCESUM: Registration = _reduce("SparseReduceSum", np.add, NUMBERS, False)
SPARSEREDUCEMAX: Registration = _reduce("SparseReduceMax", np.maximum, REALS, False)
SPARSEREDUCESUMSPARSE: Registration = _reduce("SparseReduceSumSparse", np.add, NUMBERS, True)
SPARSEREDUCEMAXSPARSE: Registration = _reduce("SparseReduceMaxSparse", np.maximum, REALS, True)


def _softmax(given: Any, indices: Array, values: Array, shape: Array) -> Array:
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


SPARSESOFTMAX: Registration = computed(
    Signature(
        "SparseSoftmax",
        "sp_indices: INT64[2], sp_values: T[1], sp_shape: INT64[1] -> output: T",
        T=(TensorType.FLOAT32, TensorType.FLOAT64, TensorType.FLOAT16),
    ),
    _softmax,
)
