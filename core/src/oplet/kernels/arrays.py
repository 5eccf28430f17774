"""Types for annotations of kernels, and copies between arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import may_share_memory
from numpy.typing import NDArray

__all__ = ["Array", "Shape", "Thunk", "copier", "copies"]

#: An array of any type and shape.
Array = NDArray[Any]
Shape = tuple[int, ...]
#: A function without arguments that runs a node: it computes the outputs from the inputs' present values. `bind` returns it.
Thunk = Callable[[], None]


def copier(target: Array, source: Array) -> Thunk:
    """A thunk that copies `source` into `target`, of the same shape; it does nothing where both are the same memory."""
    overlap = target.strides == source.strides and may_share_memory(target, source)
    if overlap and target.__array_interface__["data"] == source.__array_interface__["data"]:  # slow to ask for
        return _nothing

    def run() -> None:
        target[...] = source

    return run


def copies(pairs: Sequence[tuple[Array, Array]]) -> Thunk:
    """A thunk that copies the second array, or view, of each pair into the first, one pair after the other.

    >>> import numpy as np
    >>> left, right, whole = np.array([1]), np.array([2]), np.zeros(2, int)
    >>> copies([(whole[:1], left), (whole[1:], right)])()
    >>> whole.tolist()
    [1, 2]
    """

    def run() -> None:
        for target, source in pairs:
            target[...] = source

    return run


def _nothing() -> None:
    pass
