"""The logistic function and tanh of int16 fixed-point numbers, as tables: the activations of quantized LSTM cells.

A number with n integer bits is an int16 that counts steps of 2**(n - 15); results have no integer bits. Bit for bit as
gemmlowp's fixedpoint.h computes them, which evaluates exp by a polynomial and divides by three Newton steps.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oplet.kernels.fixed_point import rounding_divide_by_pot

__all__ = ["LOWEST", "logistic_table", "tanh_table"]

Int64s = NDArray[np.int64]

#: The input of the tables' first entry; they have one entry for each int16.
LOWEST: Final = -32768

_ONE: Final = 32767
#: exp(-2**k) for k from -2, and other constants, all without integer bits but the last two, which have two.
_POWERS: Final = (25520, 19875, 12055, 4435, 600, 11, 0)
_EXP_OF_MINUS_EIGHTH: Final = 28918
_THIRD: Final = 10923
_48_OVER_17: Final = 23130
_MINUS_32_OVER_17: Final = -15420


def _product(a: Int64s | int, b: Int64s | int) -> Int64s:
    return np.asarray(np.minimum((np.multiply(a, b) + (1 << 14)) >> 15, _ONE), np.int64)


def _wrap(x: Int64s) -> Int64s:
    return x.astype(np.int16).astype(np.int64)


def _shift_left(x: Int64s, amount: int) -> Int64s:
    """Multiply by 2**amount, saturating to int16."""
    return np.asarray(np.clip(x << amount, LOWEST, _ONE), np.int64)


def _exp_below_zero(a: Int64s) -> Int64s:
    """Compute exp(a) for a in [-1/4, 0), both in steps of 2**-15, by the Taylor polynomial of degree 4 around -1/8."""
    x = a + (1 << 12)
    x2 = _product(x, x)
    x3, x4 = _product(x2, x), _product(x2, x2)
    tail = rounding_divide_by_pot(_product(rounding_divide_by_pot(x4, 2) + x3, _THIRD) + x2, 1)
    return np.clip(_EXP_OF_MINUS_EIGHTH + _product(x + tail, _EXP_OF_MINUS_EIGHTH), LOWEST, _ONE)


def _exp(a: Int64s, integer_bits: int) -> Int64s:
    """Compute exp(a) in steps of 2**-15 for a <= 0 in steps of 2**(integer_bits - 15)."""
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    remainder = (a & (quarter - 1)) - quarter
    result = _exp_below_zero(_shift_left(remainder, integer_bits))
    quarters = remainder - a
    for power, factor in enumerate(_POWERS):
        if integer_bits > power - 2:
            result = np.where(quarters & (quarter << power), _product(result, factor), result)
    if integer_bits > 5:
        result = np.where(a < -(32 << fraction_bits), 0, result)
    return np.where(a == 0, _ONE, result)


def _reciprocal_of_mean(a: Int64s) -> Int64s:
    """Compute 2 / (1 + a), in steps of 2**-13, for a in (0, 1), in steps of 2**-15."""
    half_denominator = (a + _ONE + 1) // 2
    x = _48_OVER_17 + _product(half_denominator, _MINUS_32_OVER_17)
    for _ in range(3):
        error = (1 << 13) - _product(half_denominator, x)
        x = _wrap(x + _shift_left(_product(x, error), 2))
    return x


@functools.cache
def logistic_table(integer_bits: int = 3) -> NDArray[np.int64]:
    """Return a table of 1 / (1 + exp(-x)) in steps of 2**-15 for all int16 n, ascending, where x = n * 2**(integer_bits - 15)."""
    x = np.arange(LOWEST, 32768, dtype=np.int64)
    positive = _shift_left(_reciprocal_of_mean(_exp(-np.abs(x), integer_bits)), 1)
    table = np.where(x > 0, positive, _ONE - positive)
    table[-LOWEST] = 1 << 14
    table.setflags(write=False)
    return table


@functools.cache
def tanh_table(integer_bits: int) -> NDArray[np.int64]:
    """Return a table of tanh(x) in steps of 2**-15 for all int16 n, ascending, where x = n * 2**(integer_bits - 15)."""
    x = np.arange(LOWEST, 32768, dtype=np.int64)
    # The same bits with one more integer bit are twice the number.
    magnitude = _shift_left(_reciprocal_of_mean(_exp(-np.abs(x), integer_bits + 1)) - (1 << 13), 2)
    table = np.where(x < 0, -magnitude, magnitude)
    table[-LOWEST] = 0
    table.setflags(write=False)
    return table
