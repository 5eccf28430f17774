"""Sigmoid and tanh of float32 slices in place, for the gates of recurrent cells; accurate to a few units in the last place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.softmax.exponentials import exp

__all__ = ["sigmoids", "tanh", "tanhs"]

_ONE, _TWO, _ZERO, _LOWEST = np.float32(1), np.float32(2), np.float32(0), np.float32(-87.33)
#: Below this magnitude a polynomial is used, as 1 - 2 / (exp(2x) + 1) would lose digits by cancellation.
_SMALL = np.float32(0.625)
_T4, _T3, _T2 = np.float32(-5.70498872745e-3), np.float32(2.06390887954e-2), np.float32(-5.37397155531e-2)
_T1, _T0 = np.float32(1.33314422036e-1), np.float32(-3.33332819422e-1)

_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)
_contracting: Callable[..., Any] = inlined(error_model="numpy", fastmath={"contract"})


@_contracting
def tanh(x):  # type: ignore[no-untyped-def]
    """Compute tanh(x); NaN stays NaN, and -0.0 stays -0.0."""
    size = abs(x)
    square = x * x
    near = size + size * square * ((((_T4 * square + _T3) * square + _T2) * square + _T1) * square + _T0)
    far = _ONE - _TWO / (exp(size + size) + _ONE)
    return np.copysign(near if size < _SMALL else far, x)


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
