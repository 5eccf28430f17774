"""Type aliases for kernels (Array, Shape, Thunk), and functions that copy between arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from numpy import may_share_memory

from oplet.ops.shared_values import Array, address_of

__all__ = ["Array", "Copies", "Shape", "Thunk", "address_of", "copier", "copies", "spans"]

Shape = tuple[int, ...]
#: A function without arguments that runs a node: it computes the outputs from the inputs' present values. `bind` returns it.
Thunk = Callable[[], None]


class Copies:
    """A callable that copies arrays, one after the other. Its copies are listed in `pairs`, so that an engine that fuses steps
    may compile them.

    Attributes:
        pairs: for each copy its target and its source, two arrays or views of one shape.
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: Sequence[tuple[Array, Array]]) -> None:
        self.pairs = tuple(pairs)

    def __call__(self) -> None:
        for target, source in self.pairs:
            target[...] = source


def copier(target: Array, source: Array) -> Copies:
    """Return a callable that copies `source` into `target`, of the same shape; it does nothing where both are the same memory."""
    if target.strides == source.strides and address_of(target) == address_of(source) and may_share_memory(target, source):
        return _NOTHING
    return Copies([(target, source)])


def copies(pairs: Sequence[tuple[Array, Array]]) -> Copies:
    """Return a callable that copies the second array, or view, of each pair into the first, one pair after the other.

    >>> import numpy as np
    >>> left, right, whole = np.array([1]), np.array([2]), np.zeros(2, int)
    >>> copies([(whole[:1], left), (whole[1:], right)])()
    >>> whole.tolist()
    [1, 2]
    """
    return Copies(pairs)


def spans(arrays: Iterable[Array]) -> list[tuple[int, int]]:
    """Return the address range (first byte, end) of each array or view that is not empty."""
    found = []
    for array in arrays:
        if array.size:
            first = address_of(array)
            if array.flags.c_contiguous:
                found.append((first, first + array.nbytes))
                continue
            steps = [(length - 1) * stride for length, stride in zip(array.shape, array.strides)]
            before, after = sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
            found.append((first + before, first + after + array.itemsize))
    return found


_NOTHING = Copies(())
