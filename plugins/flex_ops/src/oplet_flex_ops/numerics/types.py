"""Groups of element types, as TensorFlow's CPU kernels are registered for them."""

from __future__ import annotations

from oplet import TensorType

__all__ = [
    "BOOL", "COMPLEX", "EVERY", "FLOATS", "INDEX", "INTEGERS", "NUMBERS", "REAL", "SHORT_FLOATS", "SIGNED", "UNSIGNED", "WIDE",
    "WIDE_FLOATS", "WITH_HALF",
]  # fmt: skip

BOOL = (TensorType.BOOL,)
#: The floats that are computed in single precision and then rounded.
SHORT_FLOATS = (TensorType.FLOAT16, TensorType.BFLOAT16)
WIDE_FLOATS = (TensorType.FLOAT32, TensorType.FLOAT64)
FLOATS = (*WIDE_FLOATS, *SHORT_FLOATS)
#: All floats but bfloat16.
WITH_HALF = (TensorType.FLOAT16, *WIDE_FLOATS)
COMPLEX = (TensorType.COMPLEX64, TensorType.COMPLEX128)
#: What LAPACK computes with.
WIDE = (*WIDE_FLOATS, *COMPLEX)
SIGNED = (TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)
UNSIGNED = (TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64)
INTEGERS = (*SIGNED, *UNSIGNED)
REAL = (*FLOATS, *INTEGERS)
NUMBERS = (*REAL, *COMPLEX)
#: Numbers and truth values.
EVERY = (*NUMBERS, *BOOL)
#: The types of shapes, axes and indices.
INDEX = (TensorType.INT32, TensorType.INT64)
