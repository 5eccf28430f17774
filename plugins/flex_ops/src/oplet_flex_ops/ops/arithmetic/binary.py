"""Elementwise functions of two operands that broadcast. Numerics: tensorflow/core/kernels/cwise_ops.h."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import TensorType, ensure
from oplet.kernels.arrays import Array
from oplet_flex_ops.numerics.elementwise import binary
from oplet_flex_ops.numerics.types import COMPLEX, FLOATS, INDEX, INTEGERS, REAL, SIGNED, UNSIGNED, WIDE_FLOATS

_ANALYTIC = (*FLOATS, *COMPLEX)
_NUMBERS = (*REAL, *COMPLEX)


def _by_nonzero(function: Callable[[Array, Array, Array], Any]) -> Callable[[Array, Array, Array], None]:
    """Wrap a division to raise an error for integer divisors of zero."""

    def run(x: Array, y: Array, out: Array) -> None:
        if y.dtype.kind in "iu":
            ensure((y != 0).all() or not out.size, "Integer division by zero: the second operand holds a 0.")
        function(x, y, out)

    return run


def _truncated_quotient(x: Array, y: Array, out: Array) -> None:
    if x.dtype.kind == "i":
        remainder = np.fmod(x, y)
        np.floor_divide(x - remainder, y, out)
    elif x.dtype.kind == "u":
        np.floor_divide(x, y, out)
    else:
        np.divide(x, y, out)
        np.trunc(out, out)


def _quotient(x: Array, y: Array, out: Array) -> None:
    if x.dtype.kind in "iu":
        _truncated_quotient(x, y, out)
    else:
        np.divide(x, y, out)


def _floored_quotient(x: Array, y: Array, out: Array) -> None:
    if x.dtype.kind in "iu":
        np.floor_divide(x, y, out)
    else:
        np.divide(x, y, out)
        np.floor(out, out)


def _floored_remainder(x: Array, y: Array, out: Array) -> None:
    if x.dtype.kind in "iu":
        np.mod(x, y, out)
        return
    remainder = np.fmod(x, y)
    np.copyto(out, np.where((remainder != 0) & ((y < 0) != (remainder < 0)), remainder + y, remainder))


def _where_nonzero(function: Callable[..., Any], of: int) -> Callable[[Array, Array, Array], None]:
    """Wrap a function to return 0 where operand number `of` is zero (e.g. Xdivy, MulNoNan)."""

    def run(x: Array, y: Array, out: Array) -> None:
        value = function(x, y)
        np.copyto(out, np.where((x, y)[of] == 0, np.zeros((), out.dtype), value))

    return run


def _power(x: Array, y: Array, out: Array) -> None:
    if y.dtype.kind == "i":
        ensure((y >= 0).all(), "Integers to negative integer powers are not allowed: the exponents hold one.")
    np.power(x, y, out)


def _squared_difference(x: Array, y: Array, out: Array) -> None:
    np.subtract(x, y, out)
    np.multiply(out, np.conj(out), out)


def _shift(function: Callable[[Array, Array, Array], Any]) -> Callable[[Array, Array, Array], None]:
    """Wrap a shift to clamp the amount to 0 .. bits - 1."""

    def run(x: Array, y: Array, out: Array) -> None:
        function(x, np.clip(y, 0, 8 * x.dtype.itemsize - 1).astype(x.dtype), out)

    return run


ADD = binary(np.add, *_ANALYTIC, *SIGNED, TensorType.UINT8, TensorType.STRING)
ADDV2 = binary(np.add, *_NUMBERS)
ATAN2 = binary(np.arctan2, *FLOATS)
BITWISEAND = binary(np.bitwise_and, *INTEGERS)
BITWISEOR = binary(np.bitwise_or, *INTEGERS)
BITWISEXOR = binary(np.bitwise_xor, *INTEGERS)
DIV = binary(_by_nonzero(_quotient), *_NUMBERS)
DIVNONAN = binary(_where_nonzero(np.divide, 1), *_ANALYTIC)
# The quotient of halves is rounded before it is cut off, so it is computed in their own type.
FLOORDIV = binary(_by_nonzero(_floored_quotient), *REAL, widened={})
FLOORMOD = binary(_by_nonzero(_floored_remainder), *REAL)
LEFTSHIFT = binary(_shift(np.left_shift), *INTEGERS)
MAXIMUM = binary(lambda x, y, out: np.maximum(x, y, out=out), *REAL)
MINIMUM = binary(lambda x, y, out: np.minimum(x, y, out=out), *REAL)
MOD = TRUNCATEMOD = binary(_by_nonzero(np.fmod), *WIDE_FLOATS, *INDEX)
MUL = binary(np.multiply, *_NUMBERS)
MULNONAN = binary(_where_nonzero(np.multiply, 1), *_ANALYTIC)
NEXTAFTER = binary(np.nextafter, *WIDE_FLOATS, signature="T=FLOAT32, T -> T")
POW = binary(_power, *_ANALYTIC, *SIGNED)
REALDIV = binary(np.divide, *_ANALYTIC)
RIGHTSHIFT = binary(_shift(np.right_shift), *INTEGERS)
SQUAREDDIFFERENCE = binary(_squared_difference, *_ANALYTIC, *INDEX)
SUB = binary(np.subtract, *_ANALYTIC, *SIGNED, *UNSIGNED)
TRUNCATEDIV = binary(_by_nonzero(_truncated_quotient), *REAL, widened={})
XDIVY = binary(_where_nonzero(np.divide, 0), *_ANALYTIC)
XLOG1PY = binary(_where_nonzero(lambda x, y: x * np.log1p(y), 0), *_ANALYTIC)
XLOGY = binary(_where_nonzero(lambda x, y: x * np.log(y), 0), *_ANALYTIC)
