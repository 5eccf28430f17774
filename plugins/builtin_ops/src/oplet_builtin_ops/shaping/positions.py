"""Converts index vectors of GATHER_ND, SCATTER_ND and SPARSE_TO_DENSE to flat row numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from oplet import Tensor, charge, ensure_fits
from oplet.kernels.arrays import Array, Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["row_finder", "row_positions"]


_any = np.logical_or.reduce


def row_finder(indices: Tensor, depth: int, shape: Shape) -> Callable[[], NDArray[np.int64]]:
    """Return a function that computes `row_positions` of a tensor's index vectors, which are computed just once if constant."""
    vectors = indices.data.reshape(prod(indices.shape) // depth if depth else prod(indices.shape[:-1]), depth)
    find = _finder(vectors, shape)
    if not indices.is_constant:
        return find
    rows = find()
    return lambda: rows


def row_positions(indices: Array, shape: Shape) -> NDArray[np.int64]:
    """Return the flat row number of each index vector (count, depth) in an array of `shape`, whose first `depth` axes are rows.

    Raises:
        UnfitError: an index is negative or not below its dimension.
    """
    return _finder(indices, shape)()


def _finder(indices: Array, shape: Shape) -> Callable[[], NDArray[np.int64]]:
    count, depth = indices.shape
    signed = np.iinfo(indices.dtype)
    # As an unsigned number a negative index is beyond all bounds.
    unsigned = indices.view(f"u{indices.itemsize}") if indices.size else indices
    bounds = np.array([min(bound, signed.max + 1) for bound in shape[:depth]], unsigned.dtype)
    strides = [np.array(prod(shape[axis + 1 : depth]), np.int64) for axis in range(depth)]
    columns = [indices[:, axis] for axis in range(depth)]

    scratch = indices.size + 2 * np.dtype(np.int64).itemsize * count

    def find() -> NDArray[np.int64]:
        charge(scratch)
        if _any(np.greater_equal(unsigned, bounds), None):
            _refuse(indices, shape)
        if len(columns) == 1:
            return columns[0].astype(np.int64)
        rows = np.zeros(count, np.int64) if not columns else np.multiply(columns[0], strides[0])
        for column, stride in zip(columns[1:], strides[1:]):
            np.add(rows, np.multiply(column, stride), rows)
        return rows

    return find


def _refuse(indices: Array, shape: Shape) -> None:
    bounds, top = shape[: indices.shape[1]], int(np.iinfo(indices.dtype).max)
    outside = [(indices[:, axis] < 0) | (indices[:, axis] > min(bound - 1, top)) for axis, bound in enumerate(bounds)]
    row = min(int(wrong.argmax()) for wrong in outside if wrong.any())
    axis = next(axis for axis, wrong in enumerate(outside) if wrong[row])
    ensure_fits(
        False,
        f"index {indices[row].tolist()} (number {row}) is outside the shape {list(shape)}: "
        f"{indices[row, axis]} is not in 0 to {bounds[axis] - 1}.",
    )
