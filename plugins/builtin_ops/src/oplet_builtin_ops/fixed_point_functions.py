"""Functions of real numbers in 32-bit fixed point, bit for bit as gemmlowp's fixedpoint.h computes them.

A number with n integer bits is an int32 that counts steps of 2**(n - 31).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oplet_builtin_ops.fixed_point import rounding_divide_by_pot
from oplet_builtin_ops.fixed_point import saturating_rounding_doubling_high_mul as product

__all__ = ["exp_on_negative_values", "reciprocal"]

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

_ONE: Final = 2**31 - 1
#: exp(-2**k) without integer bits, for k from -2.
_POWERS: Final = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)


def _saturating_shift_left(x: NDArray[np.int64] | Int32s, amount: int) -> Int32s:
    return np.asarray(np.clip(np.asarray(x, np.int64) << amount, -(2**31), _ONE), np.int32)


def _exp_below_zero(a: Int32s) -> Int32s:
    """exp on [-1/4, 0), by the Taylor polynomial of degree 4 around -1/8; no integer bits."""
    x = (a.astype(np.int64) + (1 << 28)).astype(np.int32)
    x2 = product(x, x)
    x3, x4 = product(x2, x), product(x2, x2)
    quarter = rounding_divide_by_pot(x4, 2)
    tail = product((quarter.astype(np.int64) + x3).astype(np.int32), 715827883).astype(np.int64) + x2
    rest = x.astype(np.int64) + rounding_divide_by_pot(tail.astype(np.int32), 1)
    return (1895147668 + product(rest.astype(np.int32), 1895147668).astype(np.int64)).astype(np.int32)


def exp_on_negative_values(x: Int32s, integer_bits: int) -> Int32s:
    """exp(x) without integer bits, for x <= 0 with up to 5 integer bits."""
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
    """1 / (1 + x) for x from 0 to 1, without integer bits but not yet cut to 31 bits: three Newton steps.

    The steps have numbers with 2 integer bits. `x` is an int or an int64 array; nothing here leaves 32 bits, so that
    both compute the same.
    """
    # The sum is never negative, so that half of it rounds up.
    half_denominator = (x + _ONE + 1) >> 1
    estimate = 1515870810 + _product(half_denominator, -1010580540)
    for _ in range(3):
        error = (1 << 29) - _product(half_denominator, estimate)
        estimate = estimate + (_product(estimate, error) << 2)
    return estimate << 1


def _product(a: Any, b: Any) -> Any:
    """The high half of 2ab, where it cannot overflow."""
    return (a * b + (1 << 30)) >> 31


def reciprocal(x: Int64s, integer_bits: int) -> tuple[Int64s, Int64s]:
    """1 / x for unsigned 32-bit x above zero: (value without integer bits, how many bits x has above 1)."""
    if x.size == 1:
        # One row is the usual case, and arrays of one element cost as much as long ones.
        total = int(x.item())
        headroom = 32 - total.bit_length()
        value = min(_one_over_one_plus((total << headroom) - (1 << 31)), _ONE)
        return np.full(x.shape, value, np.int64), np.full(x.shape, integer_bits - headroom, np.int64)
    headrooms = 32 - np.frexp(x.astype(np.float64))[1].astype(np.int64)
    return np.minimum(_one_over_one_plus((x << headrooms) - (1 << 31)), _ONE), integer_bits - headrooms
