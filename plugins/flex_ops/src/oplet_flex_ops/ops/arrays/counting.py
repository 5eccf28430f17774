"""Operators that find and count values: Unique*, Bincount, DenseBincount, ListDiff, InvertPermutation, HistogramFixedWidth.

Numerics: tensorflow/core/kernels/{unique_op.cc,bincount_op.cc,listdiff_op.cc,histogram_op.cc}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Node, Registration, TensorType, charge, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_int, resolve_axis
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import computed, filled
from oplet_flex_ops.numerics.dense import PORTION, portions
from oplet_flex_ops.signature import INDICES, NUMBERS

__all__ = ["count_values"]

#: Columns that are numbered one after the other; rows of more are looked up whole.
_FEW = 8
_COMPARABLE = (*NUMBERS, TensorType.BOOL, TensorType.STRING)
_WEIGHTS = (TensorType.INT32, TensorType.INT64, TensorType.FLOAT32, TensorType.FLOAT64)


def _binary(attributes: Attributes) -> bool:
    return attributes.flag("binary_output", default=False)


def _numbered(values: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of a vector's distinct values in order of first appearance, and each value's index among them.

    Every NaN counts as a value of its own.
    """
    if not values.size:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    order = np.argsort(values, kind="stable")
    there = values[order]
    new = np.concatenate(([True], there[1:] != there[:-1]))
    group = np.empty(values.size, np.intp)
    group[order] = np.cumsum(new) - 1
    first = order[new]  # the sort is stable, so this is the first of its kind
    appearance = np.argsort(first)
    rank = np.empty_like(appearance)
    rank[appearance] = np.arange(appearance.size)
    return first[appearance], rank[group]


def _numbered_rows(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return what `_numbered` does, of long rows; one with a NaN is a value of its own."""
    charge(rows.nbytes + 300 * len(rows))
    known: dict[Any, int] = {}
    first: list[int] = []
    numbers = np.empty(len(rows), np.intp)
    for number, row in enumerate(paced(rows, max(1, PORTION // rows.shape[1]))):
        if rows.dtype == object:
            key: Any = tuple(row)
        elif rows.dtype.kind in "biu":
            key = row.tobytes()
        else:  # zeros of both signs are equal
            key = number if np.isnan(row).any() else (row + row.dtype.type(0)).tobytes()
        if (place := known.setdefault(key, len(first))) == len(first):
            first.append(number)
        numbers[number] = place
    return np.array(first, np.intp), numbers


def _unique(axis: int, values: Array) -> tuple[Array, NDArray[np.intp], int]:
    """Return the distinct slices along an axis, each slice's index among them, and the count of each."""
    slices = np.moveaxis(values, axis, 0)
    columns = slices.reshape(len(slices), -1) if slices.size else np.zeros((len(slices), 0), values.dtype)
    if columns.shape[1] == 0:
        first = np.zeros(min(1, len(slices)), np.intp)
        numbers = np.zeros(len(slices), np.intp)
    elif columns.shape[1] > _FEW:
        first, numbers = _numbered_rows(columns)
    else:
        first, numbers = _numbered(columns[:, 0])
        for column in columns.T[1:]:
            checkpoint()
            first, numbers = _numbered(numbers * len(slices) + _numbered(column)[1])
    return np.moveaxis(slices[first], 0, axis), numbers, len(first)


def _uniques(op: str, *, axis: bool, counts: bool) -> Registration:
    def compute(given: Any, x: Array, *more: Array) -> list[Array]:
        along = 0
        if more and more[0].size:
            ensure(more[0].size == 1, f"axis must hold one number or none, not {more[0].size}.")
            along = resolve_axis(int(more[0][0]), x.ndim)
        else:
            ensure(x.ndim == 1, f"an input of shape {list(x.shape)} must be a vector, or have an axis.")
        values, numbers, count = _unique(along, x)
        return [values, numbers, np.bincount(numbers, minlength=count)] if counts else [values, numbers]

    text = f"x: T{', axis: Taxis[1]' if axis else ''} -> y: T, idx: out_idx{', count: out_idx' if counts else ''}"
    return computed(op, text, T=_COMPARABLE, Taxis=INDICES, out_idx=INDICES)(compute)


UNIQUE = _uniques("Unique", axis=False, counts=False)
UNIQUEV2 = _uniques("UniqueV2", axis=True, counts=False)
UNIQUEWITHCOUNTS = _uniques("UniqueWithCounts", axis=False, counts=True)
UNIQUEWITHCOUNTSV2 = _uniques("UniqueWithCountsV2", axis=True, counts=True)


@computed("ListDiff", "x: T[1], y: T[1] -> out: T, idx: out_idx", T=_COMPARABLE, out_idx=INDICES)
def LISTDIFF(given: Any, x: Array, y: Array) -> list[Array]:
    left = (~np.isin(x, y)).nonzero()[0] if x.dtype != object else _strings_left(x, y)
    return [x[left], left]


def _strings_left(x: Array, y: Array) -> NDArray[np.intp]:
    known = set(y.tolist())
    return np.array([place for place, text in enumerate(paced(listed(x))) if text not in known], np.intp)


@filled("InvertPermutation", "x: T[1] -> y: T", lambda node, given: [node.inputs[0].shape], T=INDICES)
def INVERTPERMUTATION(given: Any, outputs: list[Array], x: Array) -> None:
    outside = (x < 0) | (x >= x.size)
    ensure(not outside.any(), lambda: f"{x[outside][0]} is not in 0 to {x.size - 1}, as numbers of a permutation are.")
    outputs[0].fill(-1)
    for [part] in portions(x.shape):
        outputs[0][x[part]] = np.arange(part.start, part.stop)
    ensure((outputs[0] >= 0).all(), "the numbers are no permutation: one of them stands there twice.")


def count_values(target: Array, rows: Array | Callable[[slice], Array], values: Array, weights: Array, binary: bool) -> None:
    """Compute a histogram of each row, weighted; or only mark which bins have values if `binary`.

    Args:
        target: the bins, of shape (rows, size); overwritten.
        rows: the row of each value, or a function that returns the rows of a slice of the values.
        values: integers; those beyond the bins are not counted.
        weights: the weight of each value; empty for 1 each.
        binary: whether a bin with values is 1, instead of the sum of their weights.

    Raises:
        EnsureError: a value is negative, or there are not as many weights as values.
    """
    ensure(not values.size or values.min() >= 0, "a value to count is negative.")
    ensure(weights.size in (0, values.size), f"there are {weights.size} weights for {values.size} values.")
    target.fill(0)
    for part in portions(values.shape):
        number = rows(part[0]) if callable(rows) else rows[part]
        there = values[part] < target.shape[1]
        places = (number[there], values[part][there])
        if binary:
            target[places] = 1
        else:
            np.add.at(target, places, weights[part][there] if weights.size else target.dtype.type(1))


def _bins(position: int) -> Callable[[Node], int]:
    def read(node: Node) -> int:
        size = read_int(node.inputs[position])
        ensure(size >= 0, f"the number of bins is {size} and must not be negative.")
        return size

    return read


@filled("Bincount", "arr: INT32, size: INT32[0]!, weights: T -> bins: T", lambda node, given: [(_bins(1)(node),)], T=_WEIGHTS)
def BINCOUNT(given: Any, outputs: list[Array], values: Array, size: Array, weights: Array) -> None:
    flat = values.reshape(-1)
    count_values(outputs[0][None], _no_rows, flat, weights.reshape(-1), False)


def _no_rows(part: slice) -> Array:
    return np.zeros(part.stop - part.start, np.intp)


def _dense_shapes(node: Node, binary: bool) -> list[Shape]:
    values, weights = node.inputs[0], node.inputs[2]
    ensure(1 <= values.ndim <= 2, f"{values} must have one or two dimensions.")
    ensure(weights.size == 0 or weights.shape == values.shape, f"{weights} must be empty, or of the shape of {values}.")
    return [(*values.shape[:-1], _bins(1)(node))]


@filled("DenseBincount", "input: Tidx, size: Tidx!, weights: T -> output: T", _dense_shapes, _binary, Tidx=INDICES, T=_WEIGHTS)
def DENSEBINCOUNT(binary: bool, outputs: list[Array], values: Array, size: Array, weights: Array) -> None:
    def rows(part: slice) -> Array:
        return np.arange(part.start, part.stop) // (values.shape[1] if values.ndim == 2 else values.size)

    target = outputs[0] if values.ndim == 2 else outputs[0][None]
    count_values(target, rows, values.reshape(-1), weights.reshape(-1), binary)


def _histogram_shapes(node: Node, given: Any) -> list[Shape]:
    bounds, count = node.inputs[1], read_int(node.inputs[2])
    ensure(bounds.shape == (2,), f"{bounds} must hold the two ends of the range.")
    ensure(count > 0, f"nbins is {count} and must be above zero.")
    return [(count,)]


@filled(
    "HistogramFixedWidth",
    "values: T, value_range: T, nbins: INT32[0]! -> out: dtype",
    _histogram_shapes,
    T=_WEIGHTS,
    dtype=INDICES,
)
def HISTOGRAMFIXEDWIDTH(given: Any, outputs: list[Array], values: Array, bounds: Array, nbins: Array) -> None:
    low, high = bounds
    count = outputs[0].size
    ensure(low < high, f"the range from {low} to {high} is empty.")
    ensure(values.dtype.kind != "f" or not np.isnan(values).any(), "values to count in a histogram are NaN.")
    outputs[0].fill(0)
    for part in portions(values.shape, max(PORTION, count)):
        with np.errstate(all="ignore"):
            step = np.float64(high - low) / count
            places = (np.maximum(values[part].reshape(-1), low) - low).astype(np.float64) / step
        outputs[0][...] += np.bincount(np.clip(np.nan_to_num(places), 0, count - 1).astype(np.intp), minlength=count).astype(
            outputs[0].dtype
        )
