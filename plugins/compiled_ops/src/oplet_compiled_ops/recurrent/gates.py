"""Sigmoid and tanh of float32 slices in place, for the gates of recurrent cells; accurate to a few units in the last place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.softmax.exponentials import exp

__all__ = ["sigmoids", "tanh", "tanhs"]

_ONE, _ZERO, _LOWEST = np.float32(1), np.float32(0), np.float32(-87.33)
#: The odd coefficients of the numerator, the even ones of the denominator, and where the quotient is 1; XNNPACK's.
_T9, _T7, _T5, _T3 = (np.float32(value) for value in (1.4248920266e-08, 2.1235626264e-05, 3.5330520477e-03, 1.3412411511e-01))
_T8, _T6, _T4, _T2 = (np.float32(value) for value in (8.1365948290e-07, 3.3472978976e-04, 2.6018999517e-02, 4.6745735407e-01))
_END = np.float32(7.9807181358)

_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)
_contracting: Callable[..., Any] = inlined(error_model="numpy", fastmath={"contract"})


@_contracting
def tanh(x):  # type: ignore[no-untyped-def]
    """Compute tanh(x); NaN stays NaN, and -0.0 stays -0.0."""
    x = _END if x > _END else x
    x = -_END if x < -_END else x
    square = x * x
    p = x * ((((_T9 * square + _T7) * square + _T5) * square + _T3) * square + _ONE)
    return p / ((((_T8 * square + _T6) * square + _T4) * square + _T2) * square + _ONE)


@_inlined
def sigmoids(values):  # type: ignore[no-untyped-def]
    """Compute 1 / (1 + exp(-x)) of each value in place; denormal results become 0."""
    for i in range(values.size):
        value = values[i]
        gate = _ONE / (_ONE + exp(-(_LOWEST if value < _LOWEST else value)))
        values[i] = _ZERO if value < _LOWEST else gate


@_inlined
def tanhs(values):  # type: ignore[no-untyped-def]
    """Compute tanh(x) of each value in place."""
    for i in range(values.size):
        values[i] = tanh(values[i])
