"""Positions in several dimensions, as GATHER_ND, SCATTER_ND and SPARSE_TO_DENSE name them, made into positions of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from oplet import Tensor, ensure
from oplet_builtin_ops.shaping.shapes import Array, Shape

__all__ = ["row_finder", "row_positions"]


def row_finder(indices: Tensor, depth: int, shape: Shape) -> Callable[[], NDArray[np.int64]]:
    """`row_positions` of a tensor of vectors of `depth` indices: worked out (and checked) here and now if it is constant."""
    vectors = indices.data.reshape(prod(indices.shape) // depth if depth else prod(indices.shape[:-1]), depth)
    if not indices.is_constant:
        return partial(row_positions, vectors, shape)
    rows = row_positions(vectors, shape)
    return lambda: rows


def row_positions(indices: Array, shape: Shape) -> NDArray[np.int64]:
    """The row that each vector of `indices` (count, depth) means in an array of `shape`, whose first `depth` axes count rows.

    Raises:
        EnsureError: an index is negative or not below its dimension.
    """
    depth = indices.shape[1]
    wide = indices.astype(np.int64)
    bounds = np.array(shape[:depth], np.int64)
    outside = (wide < 0) | (wide >= bounds)
    if outside.any():
        row, axis = (int(at[0]) for at in outside.nonzero())
        ensure(
            False,
            f"index {wide[row].tolist()} (number {row}) is outside the shape {list(shape)}: "
            f"{wide[row, axis]} is not in 0 to {bounds[axis] - 1}.",
        )
    strides = np.array([prod(shape[axis + 1 : depth]) for axis in range(depth)], np.int64)
    rows: NDArray[np.int64] = wide @ strides
    return rows
