"""Functions of real numbers in 32-bit fixed point, bit for bit as gemmlowp's fixedpoint.h computes them.

A number with n integer bits is an int32 that counts steps of 2**(n - 31).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet.kernels.fixed_point import rounding_divide_by_pot
from oplet.kernels.fixed_point import saturating_rounding_doubling_high_mul as product

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32s = NDArray[np.int32]
    Int64s = NDArray[np.int64]

__all__ = ["exp_on_negative_values", "inverse_square_root", "logarithm", "reciprocal"]


_ONE: Final = 2**31 - 1
#: The most numbers for which scalars are faster than an array.
_FEW: Final = 8
#: exp(-2**k) without integer bits, for k from -2.
_POWERS: Final = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)


def _saturating_shift_left(x: NDArray[np.int64] | Int32s, amount: int) -> Int32s:
    return np.asarray(np.clip(np.asarray(x, np.int64) << amount, -(2**31), _ONE), np.int32)


def _exp_below_zero(a: Int32s) -> Int32s:
    """Compute exp(a) for a in [-1/4, 0), both in steps of 2**-31, by the Taylor polynomial of degree 4 around -1/8."""
    x = (a.astype(np.int64) + (1 << 28)).astype(np.int32)
    x2 = product(x, x)
    x3, x4 = product(x2, x), product(x2, x2)
    quarter = rounding_divide_by_pot(x4, 2)
    tail = product((quarter.astype(np.int64) + x3).astype(np.int32), 715827883).astype(np.int64) + x2
    rest = x.astype(np.int64) + rounding_divide_by_pot(tail.astype(np.int32), 1)
    return (1895147668 + product(rest.astype(np.int32), 1895147668).astype(np.int64)).astype(np.int32)


def exp_on_negative_values(x: Int32s, integer_bits: int) -> Int32s:
    """Compute exp(x) in fixed point for x <= 0: x has `integer_bits` (at most 5) integer bits, the results have 31 fraction bits."""
    fraction_bits = 31 - integer_bits
    quarter = np.int64(1) << (fraction_bits - 2)
    wide = x.astype(np.int64)
    remainder = (wide & (quarter - 1)) - quarter
    result = _exp_below_zero(_saturating_shift_left(remainder, integer_bits))
    quarters = remainder - wide
    for power, factor in enumerate(_POWERS):
        if integer_bits > power - 2:
            result = np.where(quarters & (quarter << power), product(result, factor), result)
    return np.where(wide == 0, np.int32(_ONE), result).astype(np.int32)


def _one_over_one_plus(x: Any) -> Any:
    """Compute 1 / (1 + x) for x in [0, 1], both in steps of 2**-31, by three Newton steps; the caller clamps the result.

    The steps compute with numbers of 2 integer bits. `x` is an int or an int64 array; nothing here exceeds 32 bits, so that both
    compute the same.
    """
    # The sum is never negative, so that half of it rounds up.
    half_denominator = (x + _ONE + 1) >> 1
    estimate = 1515870810 + _product(half_denominator, -1010580540)
    for _ in range(3):
        error = (1 << 29) - _product(half_denominator, estimate)
        estimate = estimate + (_product(estimate, error) << 2)
    return estimate << 1


def _product(a: Any, b: Any) -> Any:
    """Return a * b / 2**31, rounded: gemmlowp's SaturatingRoundingDoublingHighMul, for operands that cannot overflow."""
    return (a * b + (1 << 30)) >> 31


def reciprocal(x: Int64s, integer_bits: int) -> tuple[Int64s, Int64s]:
    """Compute 1 / x = mantissa * 2**-bits for x > 0, unsigned 32-bit numbers of `integer_bits` integer bits.

    Return the mantissas, with 31 fraction bits, and the exponents `bits`, the number of bits by which x is longer than 1.
    """
    if x.size <= _FEW:
        # One row is the usual case, and arrays of a few elements cost as much as long ones.
        headrooms = [32 - total.bit_length() for total in x.ravel().tolist()]
        totals = zip(x.ravel().tolist(), headrooms)
        values = [min(_one_over_one_plus((total << headroom) - (1 << 31)), _ONE) for total, headroom in totals]
        bits = [integer_bits - headroom for headroom in headrooms]
        return np.array(values, np.int64).reshape(x.shape), np.array(bits, np.int64).reshape(x.shape)
    room = 32 - np.frexp(x.astype(np.float64))[1].astype(np.int64)
    return np.minimum(_one_over_one_plus((x << room) - (1 << 31)), _ONE), integer_bits - room


def inverse_square_root(x: NDArray[Any]) -> tuple[Int32s, Int64s]:
    """Compute 1 / sqrt(x) of int32 x >= 0 as multiplier * 2**(shift - 31); return (multiplier, shift).

    For x = 0 and x = 1 the result is the largest number below 1.
    """
    wide = np.asarray(x, np.int64)
    if 0 < wide.size <= _FEW:
        pairs = [_inverse_square_root(max(value, 2)) for value in wide.ravel().tolist()]
        factors, shifts = (np.array(column, np.int64).reshape(wide.shape) for column in zip(*pairs))
    else:
        factors, shifts = _inverse_square_root(np.maximum(wide, 2))
    small = wide <= 1
    return np.where(small, _ONE, factors).astype(np.int32), np.where(small, 0, shifts)


def _inverse_square_root(x: Any) -> tuple[Any, Any]:
    """Compute `inverse_square_root` of an int or array >= 2 by five Newton steps in numbers of 3 integer bits, starting from 1."""
    # Divided by 4 if it is not below 2**29, then multiplied by 4 until it is not below 2**27.
    large = x >> 29 != 0
    x = x >> 2 * large
    pairs = (31 - _bit_length(x)) // 2 - 1
    shift = 11 + large - pairs
    halved = (x << 2 * pairs) >> 1
    quartered = (halved + 1) >> 1
    root = 1 << 28
    for _ in range(5):
        cube = _product(_product(root, root), root) << 6
        root = (_product(3 << 27, root) - _product(quartered, cube)) << 3
    return _product(root, 1518500250) << _larger(-shift, 0), -_larger(shift, 0)


def logarithm(x: Int64s) -> Int64s:
    """Compute the natural logarithm in fixed point of numbers >= 1 with 19 fraction bits; the results have 26 fraction bits."""
    if x.size > _FEW:
        return np.asarray(_logarithm(x))
    return np.array([_logarithm(value) for value in x.ravel().tolist()], np.int64).reshape(x.shape)


def _logarithm(x: Any) -> Any:
    """Compute `logarithm` of an int or array: log of the power of two, plus a rational approximation for the mantissa near 1."""
    quarter, root_of_half, fourth_root_of_half = 1 << 23, 1518500250, 1805811301
    # The mantissa of x or that of x / sqrt(2), whichever is smaller.
    headroom = 32 - _bit_length(x)
    first = _smaller(_product(x << (headroom - 1), root_of_half) << 1, _ONE)
    first_power = ((12 - headroom) << 25) + quarter
    second_headroom = 31 - _bit_length(_product(x, root_of_half))
    second = _smaller(x << second_headroom, _ONE)
    second_power = ((12 - second_headroom) << 25) - quarter
    r, power = _smaller(first, second), _larger(first_power, second_power)
    p = (r + fourth_root_of_half + 1) >> 1
    q = 2 * (r - fourth_root_of_half)
    square = _product(q, q)
    numerator = _product(q, r) + _product(_product(q, square), 117049297)
    denominator = _product(p, 1057819769 + q + _product(127690142, square)) + _product(638450708, q)
    inverse = _smaller(_one_over_one_plus(denominator), _ONE)
    # With 6 integer bits from here on; rounded with halves away from zero.
    scaled = (numerator + 32 - (numerator < 0)) >> 6
    total = _product(power, 1488522236) + _product(scaled, inverse)
    return _smaller(_larger(total << 1, -(2**31)), _ONE)


def _bit_length(x: Any) -> Any:
    return x.bit_length() if isinstance(x, int) else np.frexp(x.astype(np.float64))[1].astype(np.int64)


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) else np.minimum(a, b)


def _larger(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) else np.maximum(a, b)
