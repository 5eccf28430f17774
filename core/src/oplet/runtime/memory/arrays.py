"""New arrays, aligned where they are large, for an arena or for one tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.ops.tensor import Array, Tensor
from oplet.runtime.memory.arena_planner import ALIGNMENT
from oplet.schema.enums import TensorType

__all__ = ["aligned_bytes", "new_array"]

#: Bytes below which an array is not aligned, as aligning it takes longer than it saves.
_SMALL = 16384


def aligned_bytes(nbytes: int, *, zeroed: bool = True) -> NDArray[Any]:
    """A uint8 array whose address is a multiple of `ALIGNMENT`.

    Args:
        nbytes: its size.
        zeroed: whether the bytes are 0; they are undefined otherwise.

    Raises:
        MemoryError: the machine has not that much.
    """
    block = (np.zeros if zeroed else np.empty)(nbytes + ALIGNMENT, np.uint8)
    start = -block.__array_interface__["data"][0] % ALIGNMENT
    return block[start : start + nbytes]


def new_array(tensor: Tensor, *, zeroed: bool = True) -> Array:
    """A new array of the tensor's shape and dtype.

    Args:
        tensor: the tensor.
        zeroed: whether the values are 0; they are undefined otherwise.

    Raises:
        MemoryError: the machine has not that much.
        ValueError: it is more than can be addressed.
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
