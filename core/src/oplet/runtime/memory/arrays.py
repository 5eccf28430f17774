"""The plan of an arena, by the lifetimes of what lies in it; new arrays, aligned where they are large; and the
numpy views of tensors' memory that a program has: while one is alive, the memory must not be replaced.
"""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import sys
import weakref
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oplet.errors import ViewError
from oplet.ops.shared_values import address_of
from oplet.ops.tensor import Array, Tensor
from oplet.records import Row
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ALIGNMENT", "ArenaPlan", "Lifetime", "Views", "aligned_bytes", "give_back_pages", "new_array", "plan_arena"]

#: The alignment of tensors in bytes: a cache line, and the widest vector registers.
ALIGNMENT = 64

#: The positions of the plan that have one list of placed tensors.
_STRETCH = 8

#: Other orders are tried where an arena is larger than the lower bound by more than this fraction.
_SPARE = 1 / 32

#: A request's number, its size, and the first and last position.
_Request = tuple[int, int, int, int]

#: The orders to place requests in, as sort keys: larger first, then earlier; earlier first, then larger; larger product of size and
#: lifetime first; larger first, then longer lifetime.
_ORDERS: tuple[Callable[[_Request], Any], ...] = (
    lambda request: (-request[1], request[2]),
    lambda request: (request[2], -request[1]),
    lambda request: -request[1] * (request[3] - request[2] + 1),
    lambda request: (-request[1], request[2] - request[3]),
)


class Lifetime(Row):
    """The size and lifetime of a tensor.

    Attributes:
        nbytes: its size in bytes.
        first: the position in the plan of the node that writes it.
        last: the position of the last node that reads it.
    """

    nbytes: int
    first: int
    last: int


class ArenaPlan(Row):
    """An offset in bytes for each request (tensor to be placed), and the size of the arena in bytes."""

    offsets: list[int]
    nbytes: int


def plan_arena(lifetimes: list[Lifetime]) -> ArenaPlan:
    """Plan an arena: requests that are alive at the same position never overlap in memory.

    Args:
        lifetimes: the requests; `first` and `last` are inclusive.
    """
    offsets = [0] * len(lifetimes)
    sizes = [-(-life.nbytes // ALIGNMENT) * ALIGNMENT for life in lifetimes]
    begin = min([life.first for life in lifetimes], default=0)
    end = max([life.last for life in lifetimes], default=0)
    base = 0
    others = []
    for i, (_, first, last) in enumerate(lifetimes):
        if first == begin and last == end:  # always alive: it shares memory with none
            offsets[i] = base
            base += sizes[i]
        elif sizes[i]:
            others.append((i, sizes[i], first, last))
    if not others:
        return ArenaPlan(offsets, base)
    best: dict[int, int] = {}
    total = sum([request[1] for request in others]) + 1
    enough = int(_most_alive(others) * (1 + _SPARE))
    for order in _ORDERS:
        found = _place(sorted(others, key=order), total)
        if found is not None:
            best, total = found
        if total <= enough:
            break
    for i, offset in best.items():
        offsets[i] = base + offset
    return ArenaPlan(offsets, base + total)


def _place(requests: Sequence[_Request], limit: int) -> tuple[dict[int, int], int] | None:
    """Return each request's offset, placed in this order, and the arena's size; None as soon as that reaches `limit` bytes."""
    from bisect import insort  # imported late: whoever takes a plan from disk plans nothing

    offsets: dict[int, int] = {}
    total = 0
    near: Sequence[tuple[int, int, int, int]]
    # The placed requests by each stretch of the plan that they are alive in, so that only those are compared that may overlap.
    placed: dict[int, list[tuple[int, int, int, int]]] = {}
    for i, size, first, last in requests:
        start, stop = first // _STRETCH, last // _STRETCH + 1
        if stop - start == 1:
            near = placed.get(start, ())
        else:
            near = sorted({rival for stretch in range(start, stop) for rival in placed.get(stretch, ())})
        offset = 0
        for low, high, begin, end in near:
            if begin <= last and end >= first and high > offset:
                if low - offset >= size:
                    break
                offset = high
        offsets[i] = offset
        top = offset + size
        if top > total:
            total = top
            if total >= limit:
                return None
        for stretch in range(start, stop):
            if stretch in placed:
                insort(placed[stretch], (offset, top, first, last))
            else:
                placed[stretch] = [(offset, top, first, last)]
    return offsets, total


def _most_alive(requests: Sequence[_Request]) -> int:
    """Return the most bytes that are alive at one position, a lower bound of the arena's size."""
    changes: dict[int, int] = {}
    for _, size, first, last in requests:
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    return max(accumulate([changes[position] for position in sorted(changes)]))


#: Bytes below which an array is not aligned, as aligning it takes longer than it saves.
_SMALL = 16384


def aligned_bytes(nbytes: int, *, zeroed: bool = True) -> NDArray[Any]:
    """Return a uint8 array whose address is a multiple of `ALIGNMENT`.

    Args:
        nbytes: its size.
        zeroed: whether the bytes are 0; they are undefined otherwise.

    Raises:
        MemoryError: the machine has not enough memory.
    """
    block = (np.zeros if zeroed else np.empty)(nbytes + ALIGNMENT, np.uint8)
    start = -address_of(block) % ALIGNMENT
    return block[start : start + nbytes]


def new_array(tensor: Tensor, *, zeroed: bool = True) -> Array:
    """Return a new array of the tensor's shape and dtype.

    Args:
        tensor: the tensor.
        zeroed: whether the values are 0; they are undefined otherwise.

    Raises:
        MemoryError: the machine has not enough memory.
        ValueError: the array is too large to be addressed.
    """
    shape, dtype = tensor.shape, tensor.dtype
    if dtype.hasobject:
        return np.full(shape, b"" if tensor.type is TensorType.STRING else None, object)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < _SMALL:
        small: Array = np.zeros(shape, dtype) if zeroed else np.empty(shape, dtype)
        return small
    array: Array = np.ndarray(shape, dtype, aligned_bytes(nbytes, zeroed=zeroed))
    return array


@functools.cache
def _advise() -> Callable[..., int] | None:
    """Return the C library's `madvise`; None where it does not empty pages at once, as only Linux's does."""
    if not sys.platform.startswith("linux") or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    advise: Any = getattr(ctypes.CDLL(None), "madvise", None)
    if advise is not None:
        advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return advise  # type: ignore[no-any-return]


def give_back_pages(array: NDArray[np.uint8]) -> int:
    """Return the pages of a private array, except those at its ends, to the system: they read as 0, and are allocated again when written.
    Return the number of bytes that were not released.
    """
    advise = _advise()
    first = address_of(array)
    begin = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (first + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - begin
    given = advise is not None and length > 0 and advise(begin, length, mmap.MADV_DONTNEED) == 0
    return int(array.nbytes) - (length if given else 0)


_ALIVE = """There is at least 1 reference to internal data
      in the interpreter in the form of a numpy array or slice. Be sure to
      only hold the function returned from tensor() if you are using raw
      data access."""


class Views:
    """Tracks the views that one interpreter has returned.

    Attributes:
        handed_out: weak references to the views' base arrays; those of views that are gone are dead.
    """

    def __init__(self) -> None:
        self.handed_out: list[weakref.ref[NDArray[Any]]] = []

    def make(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return a view of a tensor's array, which counts as alive until the last reference to it or to a slice of it is gone."""
        if data.dtype.hasobject or not data.size:
            return cast("NDArray[Any]", data.view())
        # numpy's views refer to the array at the end of their chain of bases. This chain ends at `flat`, which is made from a
        # memoryview, so that `flat` is alive as long as the view or a slice of it is.
        flat: NDArray[Any] = np.frombuffer(data.reshape(-1).view(np.uint8).data, data.dtype)
        self.handed_out = [alive for alive in self.handed_out if alive() is not None]
        self.handed_out.append(weakref.ref(flat))
        view: NDArray[Any] = flat.reshape(data.shape)
        return view

    def any_alive(self) -> bool:
        """Return whether the program still holds a view, or a slice of one."""
        return any(alive() is not None for alive in self.handed_out)

    def ensure_none(self) -> None:
        """Check that no view is alive.

        Raises:
            ViewError: a view is alive.
        """
        if self.handed_out:
            if self.any_alive():
                raise ViewError(_ALIVE)
            self.handed_out.clear()
