"""Packing: values of 4 and 2 bits, of which a buffer has several in a byte, the first in the lowest bits, and numpy one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import TensorType
from oplet_compiled_model.running.memory import PACKED

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["pack", "unpack"]


def pack(values: NDArray[Any], type: TensorType) -> NDArray[np.uint8]:
    """Pack values of a 4-bit or 2-bit type, one per byte, into bytes that hold several, the first value in the lowest bits."""
    bits = PACKED[type]
    each = 8 // bits
    low = values.reshape(-1).view(np.uint8) & (2**bits - 1)
    rows = np.zeros((-(-low.size // each), each), np.uint8)
    rows.reshape(-1)[: low.size] = low
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(rows << (np.arange(each, dtype=np.uint8) * bits), axis=1).astype(np.uint8)
    return packed


def unpack(packed: NDArray[np.uint8], type: TensorType, size: int) -> NDArray[Any]:
    """Unpack `size` values of a 4-bit or 2-bit type from packed bytes into an array with one value per byte."""
    bits = PACKED[type]
    each = 8 // bits
    low = (packed[:, None] >> (np.arange(each, dtype=np.uint8) * bits)) & (2**bits - 1)
    values: NDArray[Any] = low.reshape(-1)[:size].astype(np.uint8)
    if type is TensorType.UINT4:
        return values
    shift = 8 - bits  # the sign is the highest of the bits
    return (values << shift).view(np.int8) >> shift
