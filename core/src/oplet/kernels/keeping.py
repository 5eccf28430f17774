"""Memory that outlives a node's run (variables, tables, lists): counted against the model's limits from when it is kept until it is dropped."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np

from oplet.kernels.arrays import Array
from oplet.ops.checkpoint import current_meter
from oplet.ops.strings import held_nbytes

__all__ = ["MUCH", "Kept", "held_nbytes", "kept_array", "kept_copy"]

#: Bytes of an array object and of the note that it is counted, besides its elements; bytes above which equal strings of one object count once.
_ARRAY, MUCH = 400, 1 << 20


class Kept:
    """Bytes that a kernel keeps beyond its run, counted as long as this object is referenced; what keeps the memory holds it.

    Attributes:
        nbytes: how many they are.
    """

    __slots__ = ("_drop", "nbytes")

    def __init__(self, nbytes: int = 0) -> None:
        self.nbytes = 0
        self._drop: Callable[[int], None] | None = None
        self.add(nbytes)

    def add(self, nbytes: int) -> None:
        """Count further bytes, before they are allocated; negative ones were dropped. Outside of a run nothing is counted.

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
    """Return the array, whose memory is its own, after counting it until it and all its views are gone.

    Args:
        array: the array. Strings in it count, as often as it refers to them.
        besides: bytes of objects that are made with it and live no longer.

    Raises:
        LimitError: the model takes more memory than is allowed.
    """
    return _kept(array, besides, lambda: array)


def kept_copy(array: Array, besides: int = 0) -> Array:
    """Return a copy of an array, counted as by `kept_array`, before it is made."""
    return _kept(array, besides, lambda: np.array(array))


def _kept(array: Array, besides: int, make: Callable[[], Array]) -> Array:
    meter = current_meter()
    if meter is None:
        return make()
    nbytes = _ARRAY + array.nbytes + besides
    if array.dtype.hasobject:
        nbytes += held_nbytes(array, MUCH)
    drop = meter.keep(nbytes)
    made = make()
    weakref.finalize(made, drop, nbytes).atexit = False
    return made
