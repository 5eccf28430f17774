"""Arrays whose addresses kernels are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Array", "aligned", "flat", "padded_rows", "writable"]

Array = NDArray[Any]
_LINE = 64


def aligned(shape: Sequence[int], dtype: DTypeLike) -> Array:
    """Zeros that begin with a line of the cache, and may be read to the end of a line."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    memory = np.zeros(size + 2 * _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    result: Array = memory[start : start + size].view(kind).reshape(shape)
    return result


def padded_rows(count: int, multiple: int) -> int:
    """The next multiple."""
    return -(-count // multiple) * multiple


def writable(array: Array) -> Array:
    """The array, or a copy where it is read-only: compiled functions are for arrays that are not."""
    return array if array.flags.writeable else array.copy()


def flat(array: Array) -> Array:
    """All elements in one row."""
    return array.reshape(-1)
