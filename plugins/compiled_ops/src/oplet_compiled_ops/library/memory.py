"""Arrays whose raw addresses are passed to kernels: allocation, flat views, and views of memory at an address."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.kernels.arrays import Array
from oplet.kernels.arrays import address_of as address
from oplet.records import Row

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["Array", "Pointers", "address", "aligned", "flat", "padded_rows", "words_at", "writable"]

_LINE = 64
#: The bytes from which on filling an array with zeros takes longer than the calls that save it.
_LARGE = 1 << 15


class Pointers(Row):
    """The elements of an array kept by a thunk that are memory addresses: a plan loaded from disk relocates these, and no others."""

    table: Array  #: The array, of int64.
    places: Array  #: The flat indices of the addresses in it.


def aligned(shape: Sequence[int], dtype: DTypeLike, *, zeroed: bool = True) -> Array:
    """Allocate an array aligned to a cache line (64 bytes), with spare bytes behind it, so that vector loads may read past its
    end.

    Args:
        dtype: its type.
        zeroed: whether the values are 0; if not, those of an array of 32 KiB or more are undefined, for a caller that writes them
            all.
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
    """Round `count` up to a multiple of `multiple`."""
    return -(-count // multiple) * multiple


def writable(array: Array) -> Array:
    """Return the array, or a copy if it is read-only, since compiled functions take only writeable arrays."""
    return array if array.flags.writeable else array.copy()


def flat(array: Array) -> Array:
    """Return the array flattened to one dimension."""
    return array.reshape(-1)


def words_at(where: int, count: int) -> Array:
    """Return an int64 array that is a view of `count` 64-bit words of memory at the address `where`."""
    memory: Any = (ctypes.c_int64 * count).from_address(where)
    return np.frombuffer(memory, np.int64)
