"""New arrays, aligned where they are large, for an arena or for one tensor; and the numpy views of tensors' memory that a program has: while
one is alive, the memory must not be replaced.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oplet.errors import ViewError
from oplet.ops.shared_values import address_of
from oplet.ops.tensor import Array, Tensor
from oplet.runtime.memory.arena_planner import ALIGNMENT
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Views", "aligned_bytes", "new_array"]


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
