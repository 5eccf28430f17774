"""Arrays whose addresses are passed to kernels."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from oplet.kernels.arrays import Array
from oplet.kernels.arrays import address_of as address

__all__ = ["Array", "address", "aligned", "flat", "padded_rows", "words_at", "writable"]

_LINE = 64
#: The bytes from which on filling an array with zeros takes longer than the calls that save it.
_LARGE = 1 << 15


def aligned(shape: Sequence[int], dtype: DTypeLike, *, zeroed: bool = True) -> Array:
    """An array, aligned to a cache line, whose last cache line may be read to its end.

    Args:
        shape: its shape.
        dtype: its type.
        zeroed: whether the values are 0; otherwise those of a large one are undefined, for a caller that writes them all.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if zeroed or size < _LARGE:
        memory = np.zeros(size + 2 * _LINE, np.uint8)
    else:
        memory = np.empty(size + 2 * _LINE, np.uint8)
        memory[size:] = 0
    start = -address(memory) % _LINE
    result: Array = np.ndarray(shape, kind, memory, start)
    return result


def padded_rows(count: int, multiple: int) -> int:
    """The least multiple of `multiple` that is not below `count`."""
    return -(-count // multiple) * multiple


def writable(array: Array) -> Array:
    """The array, or a copy if it is read-only, since compiled functions take writeable arrays only."""
    return array if array.flags.writeable else array.copy()


def flat(array: Array) -> Array:
    """The array's elements with one dimension."""
    return array.reshape(-1)


def words_at(where: int, count: int) -> Array:
    """The words of memory at an address."""
    memory: Any = (ctypes.c_int64 * count).from_address(where)
    return np.frombuffer(memory, np.int64)
