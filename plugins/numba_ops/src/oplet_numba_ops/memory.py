"""Arrays whose addresses kernels are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oplet_numba_ops.overriding import Thunk

__all__ = ["Array", "aligned", "calls", "flat", "padded_rows", "writable"]

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


class _Memory:
    """Memory by its address, kept alive by the array that it belongs to."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def readable(array: Array) -> Array:
    """The same array for a kernel that only reads it: to numba a read-only one, as constants are, is another type."""
    return array if array.flags.writeable else np.asarray(_Memory(array))


def padded_rows(count: int, multiple: int) -> int:
    """The next multiple."""
    return -(-count // multiple) * multiple


def calls(program: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]], *arrays: Any) -> Thunk:
    """The thunk that makes the calls in order, and keeps alive the arrays whose addresses it gives away."""
    if len(program) == 1:
        ((only, operands),) = program

        def run_one(_keep: Any = arrays) -> None:
            only(*operands)

        return run_one
    steps = tuple(program)

    def run(_keep: Any = arrays) -> None:
        for function, arguments in steps:
            function(*arguments)

    return run


def writable(array: Array) -> Array:
    """The array, or a copy where it is read-only: compiled functions are for arrays that are not."""
    return array if array.flags.writeable else array.copy()


def flat(array: Array) -> Array:
    """All elements in one row, which is writable."""
    return writable(array.reshape(-1))
