"""SOFTMAX and LOG_SOFTMAX of integers, with the tables that the numpy kernels prepare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.lazy import emitted, inlined

__all__ = ["LOG_SOFTMAX_8", "SOFTMAX_8", "SOFTMAX_16", "product"]

_ONE = (1 << 31) - 1

highest_bit = emitted("atomics:highest_bit")
_inlined: Callable[..., Any] = inlined(error_model="numpy")


@_inlined
def product(a, b):  # type: ignore[no-untyped-def]
    """Compute a * b in int32 fixed point with 0 integer bits, rounded."""
    return (a * b + (1 << 30)) >> 31


@_inlined
def _bit_length(x):  # type: ignore[no-untyped-def]
    return highest_bit(x) + 1 if x > 0 else 0


@_inlined
def _one_over(half_denominator):  # type: ignore[no-untyped-def]
    """Compute 1 / d in int32 fixed point with 0 integer bits by three Newton steps, for d from 1 to 2, given as d / 2."""
    estimate = 1515870810 + product(half_denominator, -1010580540)
    for _ in range(3):
        error = (1 << 29) - product(half_denominator, estimate)
        estimate = estimate + (product(estimate, error) << 2)
    return min(estimate << 1, _ONE)


@_inlined
def _reciprocal(total):  # type: ignore[no-untyped-def]
    """Compute 1 / total for a fixed-point number with 12 integer bits: return (31-bit mantissa, the number of bits of `total`
    above 1).
    """
    headroom = 32 - _bit_length(total)
    return _one_over((total << headroom) >> 1), 12 - headroom


@_inlined
def _logarithm(x):  # type: ignore[no-untyped-def]
    """Compute the natural logarithm of a fixed-point number >= 1 with 12 integer bits; the result has 5.

    A power of two is split off; the logarithm of the rest, which is near 1, is a rational function.
    """
    quarter, root_of_half, fourth_root_of_half = 1 << 23, 1518500250, 1805811301
    headroom = 32 - _bit_length(x)
    first = min(product(x << (headroom - 1), root_of_half) << 1, _ONE)
    second_headroom = 31 - _bit_length(product(x, root_of_half))
    second = min(x << second_headroom, _ONE)
    r = min(first, second)
    power = max(((12 - headroom) << 25) + quarter, ((12 - second_headroom) << 25) - quarter)
    p = (r + fourth_root_of_half + 1) >> 1
    q = 2 * (r - fourth_root_of_half)
    square = product(q, q)
    numerator = product(q, r) + product(product(q, square), 117049297)
    denominator = product(p, 1057819769 + q + product(127690142, square)) + product(638450708, q)
    rounded = (numerator + 32 - (1 if numerator < 0 else 0)) >> 6
    total = product(power, 1488522236) + product(rounded, _one_over((denominator + _ONE + 1) >> 1))
    return min(max(total << 1, -(1 << 31)), _ONE)


def SOFTMAX_8(x, out, columns, exponentials, summands, sign_bit):  # type: ignore[no-untyped-def]
    """Compute SOFTMAX of each row of `columns` 8-bit numbers of a flat array, given as bits.

    `exponentials` has exp(-d) in fixed point for each distance d from a row's largest number, `summands` the same with the
    integer bits of their sum; `sign_bit` is 128 for int8 numbers, 0 for uint8.
    """
    turn = np.uint8(sign_bit)
    for start in range(0, out.size, columns):
        row, target = x[start : start + columns], out[start : start + columns]
        most = np.uint8(0)
        for i in range(columns):
            most = max(most, row[i] ^ turn)
        total = np.int64(0)
        for i in range(columns):
            total += summands[most - (row[i] ^ turn)]
        factor, over_unit = _reciprocal(total)
        exponent = over_unit + 23
        half = (np.int64(1) << exponent) >> 1
        for i in range(columns):
            high = (exponentials[most - (row[i] ^ turn)] * factor + (1 << 30)) >> 31
            value = min((high + half) >> exponent, 255)
            target[i] = np.uint8(value) ^ turn


def LOG_SOFTMAX_8(x, out, columns, distances, summands, sign_bit):  # type: ignore[no-untyped-def]
    """Compute LOG_SOFTMAX of each row of `columns` 8-bit numbers of a flat array, given as bits.

    For each distance d from a row's largest number, `distances` has -d and `summands` exp(-d), both in fixed point; `sign_bit` is
    128 for int8 numbers, 0 for uint8.
    """
    turn = np.uint8(sign_bit)
    half = (1 << 21) - 1  # half of the output's step, 1/16, below zero
    for start in range(0, out.size, columns):
        row, target = x[start : start + columns], out[start : start + columns]
        most = np.uint8(0)
        for i in range(columns):
            most = max(most, row[i] ^ turn)
        total = np.int64(0)
        for i in range(columns):
            total += summands[most - (row[i] ^ turn)]
        less = _logarithm(min(total, _ONE)) - half
        for i in range(columns):
            value = 255 + ((distances[most - (row[i] ^ turn)] - less) >> 22)
            target[i] = np.uint8(max(value, 0)) ^ turn


@_inlined
def _reciprocal_16(total, lines):  # type: ignore[no-untyped-def]
    """Compute 1 / total, both in units of 2**-15, by interpolation between 513 samples of 1 / (1 + x) (`lines`).

    Return a factor in these units, and how many bits products with it are shifted right.
    """
    headroom = 32 - _bit_length(total)
    shifted = ((total << max(headroom - 1, 0)) + (1 << 13)) >> 14
    place = min(max(shifted - ((1 << 15) + (1 << 16)), -32768), 32767)
    index = 256 + (place >> 7)
    base = np.int64(lines[index])
    slope = np.int64(np.int16(np.int64(lines[index + 1]) - base))
    return np.int64(np.int16(base + ((slope * (place & 127) + 64) >> 7))), 31 - headroom


def SOFTMAX_16(x, out, columns, exponentials, lines):  # type: ignore[no-untyped-def]
    """Compute SOFTMAX of each row of `columns` int16 numbers of a flat array.

    `exponentials` has exp(-d) in units of 2**-15 for each distance d from a row's largest number; `lines` are 513 samples of 1 /
    (1 + x).
    """
    for start in range(0, out.size, columns):
        row, target = x[start : start + columns], out[start : start + columns]
        most = np.int64(row[0])
        for i in range(columns):
            most = max(most, np.int64(row[i]))
        total = np.int64(0)
        for i in range(columns):
            total += exponentials[most - row[i]]
        factor, shift = _reciprocal_16(total, lines)
        half = (np.int64(1) << shift) >> 1
        for i in range(columns):
            value = (exponentials[most - row[i]] * factor + half) >> shift
            target[i] = min(max(value, 0), 32767)
