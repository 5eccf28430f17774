"""SOFTMAX of 8-bit numbers, with the tables of the numpy kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from oplet_numba_ops.kernels import kernel

__all__ = ["LONGEST_ROW", "SOFTMAX_8"]

#: The sums of longer rows may leave 32 bits.
LONGEST_ROW = 8191


_inlined: Callable[..., Any] = numba.njit(error_model="numpy")


@_inlined
def _product(a, b):  # type: ignore[no-untyped-def]
    return (a * b + (1 << 30)) >> 31


@_inlined
def _reciprocal(total):  # type: ignore[no-untyped-def]
    """1 / total by three Newton steps: its 31 bits, and how many bits of the 12 integer ones total has above 1."""
    headroom = 32
    rest = total
    while rest > 0:
        rest >>= 1
        headroom -= 1
    half_denominator = (total << headroom) >> 1
    estimate = 1515870810 + _product(half_denominator, -1010580540)
    for _ in range(3):
        error = (1 << 29) - _product(half_denominator, estimate)
        estimate = estimate + (_product(estimate, error) << 2)
    return min(estimate << 1, (1 << 31) - 1), 12 - headroom


@kernel("void(u1[::1], u1[::1], i8, i8[::1], i8[::1], i8)")
def SOFTMAX_8(x, out, columns, exponentials, summands, sign_bit):  # type: ignore[no-untyped-def]
    """Each row by itself; `sign_bit` is 128 where the bits are those of int8 numbers, else 0."""
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
