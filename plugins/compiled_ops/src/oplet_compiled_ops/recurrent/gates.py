"""Sigmoid and tanh of float32 slices in place, for the gates of recurrent cells; accurate to a few units in the last place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.softmax.exponentials import sigmoid

__all__ = ["quotient", "sigmoids", "tanh", "tanhs"]

#: Coefficients of tanh's numerator and denominator, the highest first, and where the quotient is 1; XNNPACK's.
_ABOVE = (1.4248920266e-08, 2.1235626264e-05, 3.5330520477e-03, 1.3412411511e-01, 1.0)
_BELOW, _END = (8.1365948290e-07, 3.3472978976e-04, 2.6018999517e-02, 4.6745735407e-01, 1.0), 7.9807181358

_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)
_contracting: Callable[..., Any] = inlined(error_model="numpy", fastmath={"contract"})


@_contracting
def quotient(x, above, below, end):  # type: ignore[no-untyped-def]
    """Compute x * p(x * x) / q(x * x), of x no farther from 0 than `end`, with polynomials by coefficients, the highest first."""
    x = np.float32(end) if x > np.float32(end) else x
    x = -np.float32(end) if x < -np.float32(end) else x
    square, p, q = x * x, np.float32(above[0]), np.float32(below[0])
    for coefficient in above[1:]:
        p = p * square + np.float32(coefficient)
    for coefficient in below[1:]:
        q = q * square + np.float32(coefficient)
    return x * p / q


@_contracting
def tanh(x):  # type: ignore[no-untyped-def]
    """Compute tanh(x); NaN stays NaN, and -0.0 stays -0.0."""
    return quotient(x, _ABOVE, _BELOW, _END)


@_inlined
def sigmoids(values):  # type: ignore[no-untyped-def]
    """Compute 1 / (1 + exp(-x)) of each value in place; denormal results become 0."""
    for i in range(values.size):
        values[i] = sigmoid(values[i])


@_inlined
def tanhs(values):  # type: ignore[no-untyped-def]
    """Compute tanh(x) of each value in place."""
    for i in range(values.size):
        values[i] = tanh(values[i])
