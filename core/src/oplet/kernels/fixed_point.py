"""Fixed-point arithmetic of quantized kernels, equal to LiteRT's bit for bit.

A real factor is kept as `multiplier * 2 ** (shift - 31)` with a 31-bit multiplier. Products are rounded twice, first to
the nearest (halves up) after the doubling high multiplication, then to the nearest (halves away from zero) at the right
shift. Numerics: tflite/kernels/internal/quantization_util.cc, tflite/kernels/internal/common.cc and gemmlowp's
fixedpoint.h.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet.ops.context import ensure
from oplet.ops.tensor import Tensor
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Int32s = NDArray[np.int32]
    Int64s = NDArray[np.int64]

__all__ = [
    "clip",
    "ensure_scale",
    "int32_of",
    "multiply_by_quantized_multiplier",
    "multiply_by_quantized_multiplier_int64",
    "multiply_rounding_up",
    "quantize_multiplier",
    "quantize_multipliers",
    "quantized_range",
    "quotient",
    "rounding_divide_by_pot",
    "saturating_rounding_doubling_high_mul",
    "single_rounding",
    "wide_shift",
    "wrapping_divide_by_pot",
]


#: The ufunc behind `np.clip`: four times as fast on small arrays. Numpy 2 moved it to `np._core`.
clip: Final[Any] = (np._core if hasattr(np, "_core") else np.core).umath.clip

#: The most values for which Python's integers are faster than an array, and the types whose values all have 32 bits.
_FEW: Final = 8
_INTEGERS: Final = (np.dtype(np.int32), np.dtype(np.int16), np.dtype(np.int8))

_RANGES: Final = {
    TensorType.UINT8: (0, 255),
    TensorType.INT8: (-128, 127),
    TensorType.INT16: (-32768, 32767),
    TensorType.INT32: (-(2**31), 2**31 - 1),
}


def quotient(a: float, b: float) -> float:
    """Divide in double precision; infinity or NaN where `b` is 0, as in C++."""
    return a / b if b else math.copysign(math.inf, a) if a else math.nan


def int32_of(values: ArrayLike) -> Int32s:
    """Truncate floats to int32; NaN and values out of range become -2**31, as on x86 (C++ leaves them undefined)."""
    values = np.asarray(values, np.float64)
    fits = np.abs(values) < 2.0**31  # False for NaN
    return np.where(fits, np.trunc(np.where(fits, values, 0.0)), -(2.0**31)).astype(np.int32)


def quantize_multiplier(real: float) -> tuple[int, int]:
    """Split a real factor into (31-bit multiplier, shift), as LiteRT's QuantizeMultiplier does.

    Factors below 2**-32 become (0, 0), and so do infinity and NaN, which result from scales of 0.
    """
    if not math.isfinite(real):
        return 0, 0
    fraction, shift = math.frexp(real)
    fixed = int(math.copysign(math.floor(abs(fraction) * 2.0**31 + 0.5), fraction))
    if abs(fixed) == 1 << 31:
        fixed, shift = fixed // 2, shift + 1
    return (fixed, shift) if shift >= -31 and fixed else (0, 0)


def quantize_multipliers(reals: ArrayLike) -> tuple[Int32s, Int64s]:
    """Apply `quantize_multiplier` to each factor; return the multipliers, int32, and the shifts, int64, in the factors' shape."""
    values = np.asarray(reals, np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        values = np.where(finite, values, 0.0)
    fractions, shifts = np.frexp(values)
    fixed = np.copysign(np.floor(np.abs(fractions) * 2.0**31 + 0.5), fractions).astype(np.int64)
    shifts = shifts.astype(np.int64)
    carried = np.abs(fixed) == 1 << 31
    if carried.any():
        fixed[carried] //= 2
        shifts[carried] += 1
    flushed = (shifts < -31) | (fixed == 0)
    if flushed.any():
        fixed[flushed] = 0
        shifts[flushed] = 0
    return fixed.astype(np.int32), shifts


def saturating_rounding_doubling_high_mul(a: ArrayLike, b: ArrayLike) -> Int32s:
    """Return the high 32 bits of 2ab, rounded to nearest (halves up); -2**31 times itself saturates."""
    product = np.multiply(a, b, dtype=np.int64)
    product += 1 << 30
    product >>= 31
    return np.asarray(np.minimum(product, 2**31 - 1), np.int32)


def rounding_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> NDArray[Any]:
    """Return x / 2**exponent, rounded to nearest (halves away from zero), in the integer dtype of x."""
    x = np.asarray(x)
    wide = x.astype(np.int64)
    exponent = np.asarray(exponent, np.int64)
    half = (np.int64(1) << exponent) >> 1
    # At exponent 0 nothing is rounded, so that the sign must not be subtracted.
    wide += half - ((wide < 0) & (half > 0))
    wide >>= exponent
    return wide.astype(x.dtype)


def wrapping_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> Int32s:
    """Apply `rounding_divide_by_pot` to int32 values, with exponents that may also be below 0 or above 31.

    C++ leaves those undefined, and some of LiteRT's kernels use them. The result is that of x86: the shift counts modulo 32, and
    the remainder is taken under a mask that a 64-bit shift makes.
    """
    x, exponent = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    mask = ((np.uint64(1) << (exponent & 63).astype(np.uint64)) - np.uint64(1)).astype(np.int32).astype(np.int64)
    carried = (x & mask) > (mask >> 1) + (x < 0)
    return np.asarray((x >> (exponent & 31)) + carried, np.int32)


def multiply_by_quantized_multiplier(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Int32s:
    """Return x * multiplier * 2**(shift - 31) for 32-bit x, rounded twice: after the high multiplication, and at a right shift.

    `multiplier` and `shift` are scalars or broadcast against x. A left shift may wrap around and counts modulo 32, as on x86; C++
    leaves both undefined.
    """
    if isinstance(multiplier, int) and isinstance(shift, int) and multiplier >= 0 and -31 <= shift <= 31:
        values = np.asarray(x)
        if values.size <= _FEW and values.dtype in _INTEGERS:
            return _scaled_few(values, multiplier, shift)
        if shift <= 0:
            return _scaled_down(values, multiplier, -shift)
    shift = np.asarray(shift, np.int64)
    shifted: NDArray[Any] = np.asarray(x)
    if (shift > 0).any():
        shifted = (shifted.astype(np.int64) << (np.maximum(shift, 0) & 31)).astype(np.int32)
    high = saturating_rounding_doubling_high_mul(shifted, multiplier)
    if (shift < -31).any():
        return wrapping_divide_by_pot(high, np.maximum(-shift, 0))
    if (shift < 0).any():
        return rounding_divide_by_pot(high, np.maximum(-shift, 0))
    return high


def multiply_rounding_up(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Int32s:
    """Return x * multiplier * 2**(shift - 31) rounded twice with halves up, as in LiteRT's vector code for 8-bit outputs.

    A left shift by more than 31 bits gives 0.
    """
    shift = np.asarray(shift, np.int64)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    shifted = np.where(left > 31, 0, np.asarray(x, np.int64) << (left & 31)).astype(np.int32)
    high = saturating_rounding_doubling_high_mul(shifted, multiplier).astype(np.int64)
    return np.asarray((high + ((np.int64(1) << right) >> 1)) >> right, np.int32)


def _scaled_down(x: NDArray[Any], multiplier: int, exponent: int) -> Int32s:
    """Return x * multiplier * 2**(-31 - exponent) rounded twice as in LiteRT, in as few passes over the array as possible."""
    product: Int64s = np.multiply(x, multiplier, dtype=np.int64)
    product += 1 << 30
    product >>= 31
    if exponent:
        below = product < 0
        product += 1 << (exponent - 1)
        product -= below
        product >>= exponent
    return product.astype(np.int32)


def _scaled_few(x: NDArray[Any], multiplier: int, shift: int) -> Int32s:
    """Compute `multiply_by_quantized_multiplier` for a few values of at most 32 bits, with Python's integers."""
    exponent, half = max(-shift, 0), (1 << -shift) >> 1 if shift < 0 else 0
    results = []
    for value in x.ravel().tolist():
        if shift > 0:
            value = ((value << shift) + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
        product = value * multiplier + (1 << 30) >> 31
        # At exponent 0 nothing is rounded, so that the sign must not be subtracted.
        results.append(product + half - (product < 0 < half) >> exponent)
    return np.array(results, np.int32).reshape(x.shape)


def single_rounding(multiplier: int, shift: int) -> tuple[int, int]:
    """Return the multiplier reduced to 16 bits, and the right shift, for 64-bit accumulators with a single rounding."""
    return ((multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF), 15 - shift


def wide_shift(exponent: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rounding term 2**(exponent - 1) of a right shift, and the shift modulo 64, as on x86; both int64."""
    exponent = np.asarray(exponent, np.int64)
    return np.int64(1) << (exponent - 1 & 63), exponent & 63


def multiply_by_quantized_multiplier_int64(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Int32s:
    """Return x * multiplier * 2**(shift - 31) for 64-bit accumulators (|x| < 2**47): the multiplier has 16 bits, with one
    rounding.
    """
    multiplier = np.asarray(multiplier, np.int64)
    reduced = np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, 0x7FFF)
    half, total_shift = wide_shift(15 - np.asarray(shift, np.int64))
    result = np.multiply(x, reduced, dtype=np.int64)
    result += half
    result >>= total_shift
    return result.astype(np.int32)


def quantized_range(type: TensorType) -> tuple[int, int]:
    """Return the smallest and largest value of a quantized type.

    Raises:
        EnsureError: the type is not UINT8, INT8, INT16 or INT32.
    """
    ensure(type in _RANGES, f"{type.name} is not a quantized type.")
    return _RANGES[type]


def ensure_scale(tensor: Tensor) -> float:
    """Return the scale of a tensor that is quantized per tensor. It may be 0, which converters write for values that are always
    zero.

    Raises:
        EnsureError: the tensor has no scale or several, or one that is negative, infinite or NaN.
    """
    if tensor.quantization is None or not len(tensor.quantization.scales):
        ensure(False, f"{tensor} needs a scale and has no quantization parameters.")
    ensure(not tensor.per_channel, lambda: f"{tensor} has a scale for each slice along an axis; this op takes one for all.")
    scale = tensor.scale
    if not 0 <= scale < math.inf:
        ensure(False, f"{tensor} has scale {scale:g}; a scale must be finite and not negative.")
    return scale
