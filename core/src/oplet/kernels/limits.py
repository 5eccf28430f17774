"""What kernels do so that limits of memory and time hold: loops that look at the clock, lists that are charged before they are made, and
memory that outlives a node's run (variables, tables, lists), which counts from when it is kept until it is dropped.

A call that nothing interrupts and that may take a second or more is foreseen: `foresee(seconds)` refuses it where a deadline would pass.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from oplet.kernels.arrays import Array
from oplet.ops.ensure import charge, checkpoint, current_meter, foresee
from oplet.ops.strings import held_nbytes

__all__ = ["Kept", "foresee", "held_nbytes", "kept_array", "kept_copy", "listed", "paced"]

Item = TypeVar("Item")
#: Bytes of a number of Python's with the reference to it, and of a reference alone.
_NUMBER, _REFERENCE = 40, 8


def paced(items: Iterable[Item], every: int = 256) -> Iterator[Item]:
    """Yield the items, checking deadline and cancellation (`oplet.checkpoint`) before each `every` of them.

    Args:
        items: what a kernel loops over.
        every: the number of items whose processing takes a few milliseconds.
    """
    iterator = iter(items)
    while part := tuple(islice(iterator, every)):
        checkpoint()
        yield from part


def listed(array: Array) -> list[Any]:
    """Return the elements of an array of any shape as a flat list; its memory, 5 to 40 times the array's, is charged first.

    Raises:
        LimitError: the list takes more memory than is allowed.
    """
    charge(array.size * (_REFERENCE if array.dtype.hasobject else 2 * _NUMBER if array.dtype.kind == "c" else _NUMBER))
    checkpoint()
    found: list[Any] = array.ravel().tolist()
    return found


#: Bytes of an array object and of the note that it is counted, besides its elements.
_ARRAY = 400


class Kept:
    """Memory that a kernel keeps after its run: the bytes count while this object is referenced, so store it with the memory.

    Attributes:
        nbytes: the number of bytes that are counted.
    """

    __slots__ = ("_drop", "nbytes")

    def __init__(self, nbytes: int = 0) -> None:
        self.nbytes = 0
        self._drop: Callable[[int], None] | None = None
        self.add(nbytes)

    def add(self, nbytes: int) -> None:
        """Count further bytes before they are allocated; a negative number subtracts freed ones. Outside of a run nothing is counted.

        Raises:
            LimitError: the model takes more memory than is allowed.
        """
        meter = current_meter()
        if meter is not None and nbytes > 0:
            self._drop = meter.keep(nbytes)
            self.nbytes += nbytes
        elif nbytes < 0 and self._drop is not None:
            self._drop(-nbytes)
            self.nbytes += nbytes

    def __del__(self) -> None:
        if self._drop is not None and self.nbytes:
            self._drop(self.nbytes)


def kept_array(array: Array, besides: int = 0) -> Array:
    """Return the array after charging its memory, which it must own; it counts until the array and all its views are gone.

    Args:
        array: the array. Strings in it count once for each reference.
        besides: further bytes that are kept as long as the array.

    Raises:
        LimitError: the model takes more memory than is allowed.
    """
    return _kept(array, besides, lambda: array)


def kept_copy(array: Array, besides: int = 0) -> Array:
    """Return a copy of an array that a kernel keeps between runs, charged to the model's memory before it is made.

    Args:
        array: the array.
        besides: bytes that are kept with it.

    Raises:
        LimitError: the model would keep more than its `Limits` allow.
    """
    return _kept(array, besides, lambda: np.array(array))


def _kept(array: Array, besides: int, make: Callable[[], Array]) -> Array:
    if current_meter() is None:
        return make()
    kept = Kept(_ARRAY + array.nbytes + besides + (held_nbytes(array) if array.dtype.hasobject else 0))
    made = make()  # where there is no memory for it, nothing is kept
    weakref.finalize(made, type, kept).atexit = False  # what it refers to goes with the array
    return made
