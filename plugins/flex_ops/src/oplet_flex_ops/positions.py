"""Range checks of index vectors and row numbers that come from a model's values."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import ensure
from oplet.kernels.arrays import Array

__all__ = ["checked", "row_numbers"]


def checked(indices: Array, bound: int, what: str = "index") -> NDArray[np.int64]:
    """Return the indices as int64, checked to be in [0, bound).

    Raises:
        EnsureError: an index is negative or not below the bound; `what` names it in the message.
    """
    whole = indices.astype(np.int64, copy=False)
    outside = (whole < 0) | (whole >= bound)
    if outside.any():
        ensure(False, f"{what} {whole[outside].flat[0]} is not in 0 to {bound - 1}.")
    return whole


def row_numbers(indices: Array, shape: Sequence[int], *, skip: bool = False) -> NDArray[np.int64]:
    """Flatten index vectors (row-major) to row numbers of an array of `shape`, checked.

    Args:
        indices: integers of shape (count, len(shape)).
        shape: the sizes that they are indices of.
        skip: give -1 for a vector that is outside, instead of refusing it.

    Raises:
        EnsureError: a vector is outside, or the shape has more elements than can be counted.
    """
    ensure(prod(shape) < 1 << 62, lambda: f"the shape {list(shape)} has more elements than can be counted.")
    whole = indices.astype(np.int64, copy=False)
    bounds = np.array(shape, np.int64)
    outside: Any = ((whole < 0) | (whole >= bounds)).any(1)
    if outside.any() and not skip:
        number = int(outside.argmax())
        ensure(False, f"index {whole[number].tolist()} (number {number}) is outside the shape {list(shape)}.")
    rows = np.zeros(len(whole), np.int64)
    for axis, size in enumerate(shape):
        rows = rows * size + (np.where(outside, 0, whole[:, axis]) if skip else whole[:, axis])
    if skip:
        rows[outside] = -1
    return rows
