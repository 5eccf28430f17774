"""Arrays that are memory of their own, for an arena or for one tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.ops.tensor import Array, Tensor
from oplet.runtime.memory.arena_planner import ALIGNMENT
from oplet.schema.enums import TensorType

__all__ = ["aligned_bytes", "new_array"]

#: Bytes; what is smaller gains less from where it lies than it takes to see to that.
_SMALL = 16384


def aligned_bytes(nbytes: int, *, zeroed: bool = True) -> NDArray[Any]:
    """A block of bytes whose address is a multiple of `ALIGNMENT`.

    Args:
        zeroed: whether they are 0 to begin with; else they are whatever was there.

    Raises:
        MemoryError: there is not that much.
    """
    block = (np.zeros if zeroed else np.empty)(nbytes + ALIGNMENT, np.uint8)
    start = -block.__array_interface__["data"][0] % ALIGNMENT
    return block[start : start + nbytes]


def new_array(tensor: Tensor, *, zeroed: bool = True) -> Array:
    """An array of the tensor's shape and dtype.

    Args:
        zeroed: as `aligned_bytes` takes it.

    Raises:
        MemoryError: there is not that much; ValueError: no address space holds it.
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
