"""Sizes of a tensor's values in a file."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from oplet.schema.enums import TensorType

__all__ = ["ELEMENT_BITS", "LARGEST", "MAX_RANK", "PACKED_BITS", "bytes_needed", "values_in"]

#: Bits per value of the packed types.
PACKED_BITS = {TensorType.INT4: 4, TensorType.UINT4: 4, TensorType.INT2: 2}
#: Bits per value of all types with values of a fixed size.
ELEMENT_BITS = {
    TensorType.FLOAT32: 32, TensorType.FLOAT16: 16, TensorType.INT32: 32, TensorType.UINT8: 8, TensorType.INT64: 64,
    TensorType.BOOL: 8, TensorType.INT16: 16, TensorType.COMPLEX64: 64, TensorType.INT8: 8, TensorType.FLOAT64: 64,
    TensorType.COMPLEX128: 128, TensorType.UINT64: 64, TensorType.UINT32: 32, TensorType.UINT16: 16,
    TensorType.BFLOAT16: 16, TensorType.FLOAT8_E4M3FN: 8, TensorType.FLOAT8_E5M2: 8, **PACKED_BITS,
}  # fmt: skip

#: The most bytes that can be addressed.
LARGEST = 2**63 - 1
#: The most dimensions of a numpy array.
MAX_RANK: int = getattr(np, "MAXDIMS", 64)


def bytes_needed(shape: Iterable[int], type: TensorType) -> int | None:
    """Return the number of bytes of a tensor's values in a file; None for strings, resources and variants, whose size is not
    fixed.
    """
    bits = ELEMENT_BITS.get(type)
    if bits is None:
        return None
    return (math.prod(map(int, shape)) * bits + 7) // 8


def values_in(size: int, type: TensorType) -> int:
    """Return how many values of a type `size` bytes hold; 0 for types whose values have no fixed size."""
    bits = ELEMENT_BITS.get(type)
    return size * 8 // bits if bits else 0
