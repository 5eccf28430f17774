"""exp, LOGISTIC, SOFTMAX and LOG_SOFTMAX in float32.

exp(x) is 2**n * exp(r) with x = n * ln 2 + r and a polynomial for exp(r), within 2 units in the last place; on x86 it is XNNPACK's of
SOFTMAX, as are its sums with AVX-512. The compiler vectorizes it, which it cannot do with calls of the C library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.lazy import emitted, inlined

__all__ = ["LOGISTIC", "LOG_SOFTMAX", "SOFTMAX", "exp", "sigmoid"]

_LOG2_E, _LN2_HIGH, _LN2_LOW = np.float32(1.4426950408889634), np.float32(0.693145751953125), np.float32(1.4286068e-06)
#: 1.5 * 2**23 + 127: adding it rounds to an integer, which with the bias of exponents the sum's low bits are.
_ROUNDER = np.float32(12583039.0)
_LOWEST, _HIGHEST, _ONE, _ZERO = np.float32(-87.33654), np.float32(88.37), np.float32(1), np.float32(0)
_P5, _P4, _P3 = np.float32(8.289291e-03), np.float32(4.1897822e-02), np.float32(1.6667652e-01)
_P2, _P1 = np.float32(4.9999151e-01), np.float32(9.9999970e-01)

largest, exp_total = emitted("reductions:largest"), emitted("reductions:exp_total")
logistics = emitted("reductions:logistics")
_contracting: Callable[..., Any] = inlined(error_model="numpy", fastmath={"contract"})


@_contracting
def exp(x):  # type: ignore[no-untyped-def]
    # Both comparisons are false for NaN, which is kept.
    x = _LOWEST if x < _LOWEST else x
    x = _HIGHEST if x > _HIGHEST else x
    shifted = np.float32(x * _LOG2_E + _ROUNDER)
    whole = shifted - _ROUNDER
    r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    p = (((_P5 * r + _P4) * r + _P3) * r + _P2) * r + _P1
    power = np.int32(np.int64(shifted.view(np.int32)) << 23).view(np.float32)
    return (r * power) * p + power


@_contracting
def sigmoid(x):  # type: ignore[no-untyped-def]
    power = exp(-abs(x))
    below = _ZERO if abs(x) > -_LOWEST else power / (power + _ONE)
    return _ONE - below if x > _ZERO else below


def LOGISTIC(x, out):  # type: ignore[no-untyped-def]
    """Compute 1 / (1 + exp(-x)); denormal results become 0, as denormals are a hundred times slower."""
    for i in range(logistics(x.ctypes.data, out.ctypes.data, out.size), out.size):
        out[i] = sigmoid(x[i])


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
        factor = _ONE / exp_total(target.ctypes.data, columns)
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
        less = np.float32(np.log(exp_total(target.ctypes.data, columns)))
        for i in range(columns):
            target[i] = (row[i] - most) - less
