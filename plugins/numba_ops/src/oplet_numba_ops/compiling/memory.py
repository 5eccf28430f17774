"""Arrays whose addresses kernels are given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import addressof, c_char

import numpy as np
from numpy.typing import DTypeLike

from oplet.kernels.arrays import Array

__all__ = ["Array", "address", "aligned", "flat", "padded_rows", "writable"]

_LINE = 64


def address(array: Array) -> int:
    """Where an array begins; `array.ctypes.data` takes several times as long to say it."""
    try:
        return addressof(c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # it is read-only, empty, or has gaps
        return int(array.ctypes.data)


def aligned(shape: Sequence[int], dtype: DTypeLike) -> Array:
    """Zeros that begin with a line of the cache, and may be read to the end of a line."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    memory = np.zeros(size + 2 * _LINE, np.uint8)
    start = -address(memory) % _LINE
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
