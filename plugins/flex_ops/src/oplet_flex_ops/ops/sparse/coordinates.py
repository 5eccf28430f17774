"""Checked sparse tensors with each value's position flattened (row-major) to one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import ensure
from oplet.kernels.arrays import Array
from oplet_flex_ops.positions import row_numbers

__all__ = ["Coordinates", "coordinates", "shape_of", "vectors"]


class Coordinates(NamedTuple):
    """A sparse tensor with flattened positions.

    Attributes:
        places: the flattened (row-major) position of each value, int64.
        values: the values, a vector.
        shape: the sizes of the dense tensor.
    """

    places: NDArray[np.int64]
    values: Array
    shape: tuple[int, ...]


def shape_of(shape: Array) -> tuple[int, ...]:
    """Return the sizes that a shape vector holds, checked.

    Raises:
        EnsureError: a size is negative, or there are more sizes than numpy has axes.
    """
    ensure(shape.size <= 32, f"a shape of {shape.size} axes is no shape of a sparse tensor.")
    sizes = tuple(shape.tolist())
    ensure(all(size >= 0 for size in sizes), f"{list(sizes)!r:.60} is no shape of a sparse tensor.")
    return sizes


def coordinates(indices: Array, values: Array, shape: Array) -> Coordinates:
    """Check a sparse tensor's indices, values and shape, and flatten its indices.

    Args:
        indices: of shape (values, axes).
        values: a vector.
        shape: a vector with the size of each axis.

    Raises:
        EnsureError: the parts do not fit each other, or an index is outside of the shape.
    """
    sizes = shape_of(shape)
    ensure(
        indices.shape == (values.size, len(sizes)) and values.ndim == 1,
        f"indices of shape {list(indices.shape)} and values of shape {list(values.shape)} do not fit a shape of {len(sizes)} axes.",
    )
    return Coordinates(row_numbers(indices, sizes), values, sizes)


def vectors(places: NDArray[np.int64], shape: Sequence[int]) -> NDArray[np.int64]:
    """Convert flat positions to index vectors, shape (positions, axes)."""
    found = np.empty((places.size, len(shape)), np.int64)
    left = places
    for axis in reversed(range(len(shape))):
        left, found[:, axis] = np.divmod(left, max(shape[axis], 1))
    return found
