"""HostMemory: the values behind a TensorBuffer, with their type and shape."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from oplet import TensorType
from oplet.toolkit import bytes_needed, numpy_dtype, tensor_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ALIGNMENT", "PACKED", "HostMemory", "User", "address_in", "is_aligned"]

Shape = tuple[int, ...]

#: The address of a buffer's values is a multiple of this, as in LiteRT.
ALIGNMENT = 64

#: The types of which several values share a byte, with their bits.
PACKED = {TensorType.INT4: 4, TensorType.UINT4: 4, TensorType.INT2: 2}


class User(Protocol):
    """Protocol of an object that reads or writes the values of a HostMemory in place, such as a BufferRunner."""

    def leave(self, memory: HostMemory) -> None:
        """Stop using the memory, as its values are freed or move."""


class HostMemory:
    """The values of a tensor in this process's memory, behind a TensorBuffer.

    Attributes:
        type: the type of the values.
        dtype: the numpy dtype of `values`; uint8 for packed types, of which a byte holds several values.
        shape: the tensor's shape.
        values: the values as a flat array, which `resize` replaces.
        given: the application's array, if `values` is an aligned copy of it: a run writes its results there too; else None.
        is_given: whether the memory was made from an array of the application.
    """

    __slots__ = ("__weakref__", "_users", "dtype", "given", "is_given", "shape", "type", "values")

    def __init__(self, type: TensorType, shape: Sequence[int], values: NDArray[Any]) -> None:
        self.type = type
        self.shape: Shape = tuple(shape)
        self.dtype = values.dtype
        self.values = values
        self.given: NDArray[Any] | None = None
        self.is_given = False
        self._users: weakref.WeakSet[User] = weakref.WeakSet()

    @classmethod
    def new(cls, type: TensorType, shape: Sequence[int]) -> HostMemory:
        """Return memory for values of a type and shape: zeros, or empty strings.

        Raises:
            MemoryError: there is not enough memory.
        """
        return cls(type, shape, _zeros(type, shape))

    @classmethod
    def of(cls, array: NDArray[Any]) -> HostMemory:
        """Return the memory of a contiguous array: the array itself, or an aligned copy where its address is not aligned."""
        flat = array.reshape(-1)
        made = flat if is_aligned(array) else _zeros(tensor_type(array.dtype), flat.shape)
        if made is not flat:
            made[...] = flat
        memory = cls(tensor_type(array.dtype), array.shape, made)
        memory.is_given = True
        if made is not flat and flat.flags.writeable:
            memory.given = flat
        return memory

    @property
    def type_name(self) -> str:
        """The name of the type as numpy spells it, such as "float32"."""
        return self.type.name.lower()

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """A uint8 view of the values."""
        flat: NDArray[np.uint8] = self.values.view(np.uint8)
        return flat

    def laid_out(self, shape: Shape) -> NDArray[Any] | None:
        """Return a view of the first values in this shape; None if there are fewer values, or the type is packed."""
        size = math.prod(shape)
        if size > self.values.size or self.type in PACKED:
            return None
        return self.values[:size].reshape(shape)

    def as_type(self, type: TensorType, shape: Shape) -> NDArray[Any] | None:
        """Return a view as `laid_out`; as another type if the memory holds plain bytes (UINT8). None if that is impossible."""
        if type is self.type:
            return self.laid_out(shape)
        needed = bytes_needed(shape, type)
        if self.type is not TensorType.UINT8 or needed is None or type in PACKED or needed > self.values.size:
            return None
        return self.values[:needed].view(numpy_dtype(type)).reshape(shape)

    def resize(self, shape: Shape) -> None:
        """Change the shape, and allocate new memory of zeros or empty strings; users of the old memory are told."""
        self.shape = shape
        self.values = _zeros(self.type, shape)
        self._leave()

    def use(self, user: User) -> None:
        """Register an object that uses the values in place; its `leave` is called when the values are replaced or freed."""
        self._users.add(user)

    def release(self) -> None:
        """Call `leave` of all users of the memory and forget them."""
        self._leave()

    def _leave(self) -> None:
        for user in list(self._users):
            user.leave(self)
        self._users.clear()


def _zeros(type: TensorType, shape: Sequence[int]) -> NDArray[Any]:
    """Return new aligned values of a type and shape, in one dimension."""
    if type is TensorType.STRING:
        return np.full(math.prod(shape), b"", object)
    nbytes = bytes_needed(shape, type)
    dtype: Any = np.dtype(np.uint8) if type in PACKED else numpy_dtype(type)
    if nbytes is None:
        return np.full(math.prod(shape), None, object)
    block = np.zeros(nbytes + ALIGNMENT, np.uint8)
    start = -address_in(block) % ALIGNMENT
    values: NDArray[Any] = block[start : start + nbytes].view(dtype)
    return values


def is_aligned(array: NDArray[Any]) -> bool:
    """Return whether an array's address is a multiple of `ALIGNMENT`; True for arrays of objects (strings)."""
    return array.dtype.hasobject or address_in(array) % ALIGNMENT == 0


def address_in(array: NDArray[Any]) -> int:
    """Return the address of an array's first value."""
    address: int = array.__array_interface__["data"][0]
    return address
