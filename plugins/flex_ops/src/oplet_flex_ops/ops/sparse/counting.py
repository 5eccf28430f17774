"""Counts of values, dense or sparse: SparseBincount and RaggedBincount, DenseCountSparseOutput, SparseCountSparseOutput and
RaggedCountSparseOutput.

Numerics: tensorflow/core/kernels/{bincount_op.cc,count_ops.cc}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Node, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_int
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import computed, filled
from oplet_flex_ops.ops.arrays.counting import count_values
from oplet_flex_ops.ops.sparse.coordinates import coordinates, shape_of
from oplet_flex_ops.signature import INDICES

__all__ = ["rows_of_splits"]

_WEIGHTS = (TensorType.INT32, TensorType.INT64, TensorType.FLOAT32, TensorType.FLOAT64)


def rows_of_splits(splits: Array, count: int) -> NDArray[np.int64]:
    """Return the row of each of `count` values, from checked row splits.

    Raises:
        EnsureError: the splits do not ascend from 0 to the number of values.
    """
    whole = splits.astype(np.int64)
    ensure(
        whole.size > 0 and whole[0] == 0 and whole[-1] == count and bool((whole[1:] >= whole[:-1]).all()),
        f"the row splits do not ascend from 0 to {count}, the number of values.",
    )
    return np.repeat(np.arange(whole.size - 1), np.diff(whole))


def _binary(attributes: Attributes) -> bool:
    return attributes.flag("binary_output", default=False)


def _bins(node: Node, position: int) -> int:
    size = read_int(node.inputs[position])
    ensure(size >= 0, f"the number of bins is {size} and must not be negative.")
    return size


def _sparse_shapes(node: Node, binary: bool) -> list[Shape]:
    sizes = shape_of(node.inputs[2].data)
    ensure(1 <= len(sizes) <= 2, f"a sparse tensor of {len(sizes)} axes cannot be counted; it must have 1 or 2.")
    return [(*sizes[:-1], _bins(node, 3))]


@filled(
    "SparseBincount",
    "indices: INT64[2], values: Tidx[1], dense_shape: INT64[1]!, size: Tidx!, weights: T -> output: T",
    _sparse_shapes,
    _binary,
    Tidx=INDICES,
    T=_WEIGHTS,
)
def SPARSEBINCOUNT(
    binary: bool, outputs: list[Array], indices: Array, values: Array, shape: Array, size: Array, weights: Array
) -> None:
    coordinates(indices, values, shape)
    output = outputs[0]
    rows = indices[:, 0] if output.ndim == 2 else np.zeros(values.size, np.int64)
    count_values(output if output.ndim == 2 else output[None], rows, values, weights.reshape(-1), binary)


def _ragged_shapes(node: Node, binary: bool) -> list[Shape]:
    splits = node.inputs[0]
    ensure(splits.size > 0, f"{splits} must have the end of every row, and a 0 before.")
    return [(splits.size - 1, _bins(node, 2))]


@filled(
    "RaggedBincount",
    "splits: INT64[1], values: Tidx[1], size: Tidx!, weights: T -> output: T",
    _ragged_shapes,
    _binary,
    Tidx=INDICES,
    T=_WEIGHTS,
)
def RAGGEDBINCOUNT(binary: bool, outputs: list[Array], splits: Array, values: Array, size: Array, weights: Array) -> None:
    count_values(outputs[0], rows_of_splits(splits, values.size), values, weights.reshape(-1), binary)


class _Counting(NamedTuple):
    least: int
    most: int
    binary: bool


def _counting(attributes: Attributes) -> _Counting:
    return _Counting(
        attributes.integer("minlength", least=-1, default=-1),
        attributes.integer("maxlength", least=-1, default=-1),
        attributes.flag("binary_output"),
    )


def _counted(given: _Counting, rows: Array | None, count: int, values: Array, weights: Array, dtype: Any) -> list[Array]:
    """Count values per row; return a sparse tensor's (indices, counts, shape). `rows` is None for a single vector."""
    ensure(not values.size or int(values.min()) >= 0, "a value to count is negative.")
    ensure(weights.size in (0, values.size), f"there are {weights.size} weights for {values.size} values.")
    width = max(int(values.max()) + 1 if values.size else 0, given.least)
    kept = np.ones(values.size, np.bool_)
    if given.most >= 0:
        kept, width = values < given.most, given.most
    numbers = np.zeros(values.size, np.int64) if rows is None else rows
    ensure(max(count, 1) * max(width, 1) < 1 << 62, f"{count} rows of {width} counts are more than can be numbered.")
    places, inverse = np.unique(numbers[kept] * max(width, 1) + values[kept], return_inverse=True)
    totals = np.zeros(places.size, dtype)
    if given.binary:
        totals.fill(1)
    else:
        np.add.at(totals, inverse, weights[kept] if weights.size else dtype.type(1))
    columns = places % max(width, 1)
    if rows is None:
        return [columns[:, None], totals, np.array([width], np.int64)]
    return [np.stack([places // max(width, 1), columns], 1), totals, np.array([count, width], np.int64)]


_RESULTS = "output_indices: INT64, output_values: output_type, output_dense_shape: INT64"


@computed("DenseCountSparseOutput", f"values: T, weights: output_type -> {_RESULTS}", _counting, T=INDICES, output_type=_WEIGHTS)
def DENSECOUNTSPARSEOUTPUT(given: _Counting, values: Array, weights: Array) -> list[Array]:
    ensure(1 <= values.ndim <= 2, f"values of shape {list(values.shape)} must have one or two dimensions.")
    ensure(weights.size == 0 or weights.shape == values.shape, f"weights must be empty, or of the shape {list(values.shape)}.")
    rows = np.repeat(np.arange(len(values)), values.shape[1]) if values.ndim == 2 else None
    return _counted(given, rows, len(values), values.reshape(-1), weights.reshape(-1), weights.dtype)


@computed(
    "SparseCountSparseOutput",
    f"indices: INT64[2], values: T[1], dense_shape: INT64[1], weights: output_type -> {_RESULTS}",
    _counting,
    T=INDICES,
    output_type=_WEIGHTS,
)
def SPARSECOUNTSPARSEOUTPUT(given: _Counting, indices: Array, values: Array, shape: Array, weights: Array) -> list[Array]:
    sizes = coordinates(indices, values, shape).shape
    ensure(1 <= len(sizes) <= 2, f"a sparse tensor of {len(sizes)} axes cannot be counted; it must have 1 or 2.")
    rows = indices[:, 0] if len(sizes) == 2 else None
    return _counted(given, rows, sizes[0], values, weights.reshape(-1), weights.dtype)


@computed(
    "RaggedCountSparseOutput",
    f"splits: INT64[1], values: T[1], weights: output_type -> {_RESULTS}",
    _counting,
    T=INDICES,
    output_type=_WEIGHTS,
)
def RAGGEDCOUNTSPARSEOUTPUT(given: _Counting, splits: Array, values: Array, weights: Array) -> list[Array]:
    rows = rows_of_splits(splits, values.size)
    return _counted(given, rows, splits.size - 1, values, weights.reshape(-1), weights.dtype)
