"""exp, LOGISTIC, SOFTMAX and LOG_SOFTMAX in float32.

exp(x) is 2**n * exp(r) with x = n * ln 2 + r and a polynomial for exp(r), within 2 units in the last place. The compiler vectorizes
it, which it cannot do with calls of the C library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.lazy import emitted, inlined

__all__ = ["LOGISTIC", "LOG_SOFTMAX", "SOFTMAX", "exp"]

_LOG2_E, _LN2_HIGH, _LN2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.12194440e-4)
#: 1.5 * 2**23: adding and subtracting it rounds to an integer, which the sum's low bits are.
_ROUNDER = np.float32(12582912.0)
_BIAS = np.int32(127 - 0x4B400000)
_LOWEST, _HIGHEST, _ONE, _ZERO = np.float32(-87.33), np.float32(88.37), np.float32(1), np.float32(0)
_P5, _P4, _P3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_P2, _P1, _P0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)

largest = emitted("reductions:largest")
_contracting: Callable[..., Any] = inlined(error_model="numpy", fastmath={"contract"})
_in_any_order: Callable[..., Any] = inlined(error_model="numpy", fastmath={"reassoc", "nsz"}, boundscheck=False)


@_contracting
def exp(x):  # type: ignore[no-untyped-def]
    # Both comparisons are false for NaN, which is kept.
    x = _LOWEST if x < _LOWEST else x
    x = _HIGHEST if x > _HIGHEST else x
    shifted = np.float32(x * _LOG2_E + _ROUNDER)
    whole = shifted - _ROUNDER
    r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    p = ((((_P5 * r + _P4) * r + _P3) * r + _P2) * r + _P1) * r + _P0
    exponent = np.int32((np.int64(shifted.view(np.int32)) + np.int64(_BIAS)) << 23)
    power = exponent.view(np.float32)
    return (p * (r * r) + r + _ONE) * power


@_in_any_order
def _total(x):  # type: ignore[no-untyped-def]
    total = _ZERO
    for i in range(x.size):
        total += x[i]
    return total


def LOGISTIC(x, out):  # type: ignore[no-untyped-def]
    """Compute 1 / (1 + exp(-x)); denormal results become 0, as denormals are a hundred times slower."""
    for i in range(out.size):
        value = x[i]
        gate = _ONE / (_ONE + exp(-(_LOWEST if value < _LOWEST else value)))
        out[i] = _ZERO if value < _LOWEST else gate


def SOFTMAX(x, out, columns, beta):  # type: ignore[no-untyped-def]
    """Compute exp(beta * x) / sum(exp(beta * x)) of each row of `columns` numbers of a flat array."""
    first = x.ctypes.data
    for start in range(0, out.size, columns):
        # Slices have indices from 0 on: the compiler does not vectorize where an index might be negative.
        row, target = x[start : start + columns], out[start : start + columns]
        most = largest(first + 4 * start, columns)  # with a NaN the sum is NaN, whatever this is
        for i in range(columns):
            distance = (row[i] - most) * beta
            power = exp(distance)
            # Denormals, as of masked values, count as 0.
            target[i] = _ZERO if distance < _LOWEST else power
        factor = _ONE / _total(target)
        for i in range(columns):
            target[i] *= factor


def LOG_SOFTMAX(x, out, columns):  # type: ignore[no-untyped-def]
    """Compute x - log(sum(exp(x))) of each row of `columns` numbers of a flat array."""
    first = x.ctypes.data
    for start in range(0, out.size, columns):
        row, target = x[start : start + columns], out[start : start + columns]
        most = largest(first + 4 * start, columns)  # with a NaN the sum is NaN, whatever this is
        for i in range(columns):
            target[i] = exp(row[i] - most)
        less = np.float32(np.log(_total(target)))
        for i in range(columns):
            target[i] = (row[i] - most) - less
