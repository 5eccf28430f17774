"""New arrays, aligned where they are large, for an arena or for one tensor; and the numpy views of tensors' memory that a program has: while
one is alive, the memory must not be replaced.
"""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oplet.errors import ViewError
from oplet.ops.shared_values import address_of
from oplet.ops.tensor import Array, Tensor
from oplet.runtime.memory.arena_planner import ALIGNMENT
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Views", "aligned_bytes", "give_back_pages", "new_array"]


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
