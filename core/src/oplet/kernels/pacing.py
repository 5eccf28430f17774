"""Loops of kernels over what a model gives: looks at the clock on the way, and lists that are charged before they are made.

A call that nothing interrupts and that may take a second or more is foreseen: `foresee(seconds)` refuses it where a deadline would pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from oplet.kernels.arrays import Array
from oplet.ops.checkpoint import charge, checkpoint, foresee

__all__ = ["foresee", "listed", "paced"]

Item = TypeVar("Item")
#: Bytes of a number of Python's with the reference to it, and of a reference alone.
_NUMBER, _REFERENCE = 40, 8


def paced(items: Iterable[Item], every: int = 256) -> Iterator[Item]:
    """Yield the items, with a look at the clock (`oplet.checkpoint`) before each `every` of them.

    Args:
        items: what a kernel loops over.
        every: the number of items that take a few milliseconds together.
    """
    iterator = iter(items)
    while part := tuple(islice(iterator, every)):
        checkpoint()
        yield from part


def listed(array: Array) -> list[Any]:
    """Return the elements of an array of any shape as a flat list of Python's objects, charged before, as it takes 5 to 40 times the array.

    Raises:
        LimitError: the list takes more memory than is allowed.
    """
    charge(array.size * (_REFERENCE if array.dtype.hasobject else 2 * _NUMBER if array.dtype.kind == "c" else _NUMBER))
    checkpoint()
    found: list[Any] = array.ravel().tolist()
    return found
