"""Sets of tensor types that several operators accept."""

from __future__ import annotations

from typing import Final

from oplet import TensorType

__all__ = ["INTEGERS", "NUMBERS"]

#: Numbers of 1, 2, 4 or 8 bytes; floats of 8 bits are moved by some operators, but none computes with them.
NUMBERS: Final = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.FLOAT64,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.UINT16,
    TensorType.INT32,
    TensorType.UINT32,
    TensorType.INT64,
    TensorType.UINT64,
    TensorType.BOOL,
    TensorType.COMPLEX64,
)

#: Integers of up to 32 bits, of which bits are shifted and combined.
INTEGERS: Final = (
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.UINT16,
    TensorType.INT32,
    TensorType.UINT32,
)
