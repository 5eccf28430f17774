"""GELU: x times the cumulative distribution function of the normal distribution, in the precisions of its kernels.

Numerics: tflite/kernels/internal/reference/gelu.h
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet.kernels.arrays import Array, Thunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["bind_gelu", "bind_gelu_approximate", "gelu", "gelu_approximate", "half_table"]

#: erfc(a / sqrt(2)) * exp(a * a / 2) / 2 as a polynomial in t = 1 / (1 + 0.3 a) without a constant, highest power first;
#: fitted for a from 0 to 13.5, relative error 1.3e-7.
_TAIL: Final = (
    0.035931956,
    -0.15827685,
    0.20820796,
    -0.055394988,
    0.12946975,
    0.099637344,
    0.12079838,
    0.11962639,
)
#: Beyond this, the distribution's tail is 0 in single precision.
_FARTHEST: Final = 40.0
#: Elements that are computed at a time, so that they stay in the cache.
_BLOCK: Final = 1 << 14

_ROOT_HALF: Final = math.sqrt(0.5)
_SLOPE: Final = math.sqrt(2 / math.pi)
_CUBIC: Final = 0.044715

_erfc = np.frompyfunc(math.erfc, 1, 1)


def gelu(x: NDArray[Any]) -> NDArray[Any]:
    """Compute exact GELU of a float array, each operation rounded to the array's type."""
    real = x.dtype.type
    tail: NDArray[Any] = _erfc((x * real(-_ROOT_HALF)).astype(np.float64)).astype(x.dtype)
    return np.asarray(real(0.5) * x * tail)


def gelu_approximate(x: NDArray[Any]) -> NDArray[Any]:
    """Compute the tanh approximation of GELU for a float array, each operation rounded to the array's type."""
    real = x.dtype.type
    inner = real(_SLOPE) * (x + real(_CUBIC) * (x * x * x))
    return np.asarray(real(0.5) * x * (real(1) + np.tanh(inner.astype(np.float64)).astype(x.dtype)))


@functools.cache
def half_table(approximate: bool) -> NDArray[np.float16]:
    """Return the GELU of every float16, indexed by its bit pattern."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        return (gelu_approximate if approximate else gelu)(every)


def bind_gelu(x: Array, y: Array) -> Thunk:
    """Return a function that computes y = GELU(x) in float32, as max(x, 0) - |x| * P(X > |x|)."""
    flat, target = x.reshape(-1), y.reshape(-1)
    size = min(flat.size, _BLOCK)
    work = np.empty((3, size), np.float32)
    zero, half, farthest, third, one = (np.array(v, np.float32) for v in (0, -0.5, _FARTHEST, 0.3, 1))
    lowest = np.fmin.reduce
    coefficients = [np.array(coefficient, np.float32) for coefficient in _TAIL]

    def run() -> None:
        for start in range(0, flat.size, _BLOCK):
            source, result = flat[start : start + _BLOCK], target[start : start + _BLOCK]
            a, t, tail = work[:, : source.size]
            np.absolute(source, a)
            np.minimum(a, farthest, out=a)
            np.multiply(a, third, t)
            np.add(t, one, t)
            np.reciprocal(t, t)
            np.multiply(t, coefficients[0], tail)
            for coefficient in coefficients[1:]:
                np.add(tail, coefficient, tail)
                np.multiply(tail, t, tail)
            np.multiply(tail, a, tail)
            np.square(a, a)
            np.multiply(a, half, a)
            np.exp(a, a)
            np.multiply(tail, a, tail)
            # LiteRT's arithmetic gives NaN for -inf, by products of infinity and 0.
            endless = lowest(source) == -np.inf
            beyond = source == -np.inf if endless else None  # before the result overwrites it
            np.maximum(source, zero, out=result)
            np.subtract(result, tail, result)
            if beyond is not None:
                result[beyond] = np.nan

    return run


def bind_gelu_approximate(x: Array, y: Array) -> Thunk:
    """Return a function that computes y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) in float32."""
    flat, target = x.reshape(-1), y.reshape(-1)
    work = np.empty(min(flat.size, _BLOCK), np.float32)
    slope, cubic, one, half = (np.array(v, np.float32) for v in (_SLOPE, _CUBIC * _SLOPE, 1, 0.5))

    def run() -> None:
        for start in range(0, flat.size, _BLOCK):
            source, result = flat[start : start + _BLOCK], target[start : start + _BLOCK]
            inner = work[: source.size]
            np.square(source, inner)
            np.multiply(inner, cubic, inner)
            np.add(inner, slope, inner)
            np.multiply(inner, source, inner)
            np.tanh(inner, inner)
            np.add(inner, one, inner)
            np.multiply(inner, half, inner)
            np.multiply(inner, source, result)

    return run
