"""Bessel functions of orders 0 and 1, in double precision.

Up to 25 they are Chebyshev series, whose values at the nodes come from Bessel's integral by the trapezoidal rule, exact there to
the last digits as the integrand is periodic; beyond, Hankel's asymptotic expansions (DLMF 10.17, 10.40). The logarithmic parts of the
second kinds are Neumann's series (DLMF 10.8.2, A&S 9.1.88).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate, chebval

from oplet.kernels.arrays import Array

__all__ = ["i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1"]

_FAR = 25.0
_NEAR = 2.0
_ANGLES = (np.arange(256) + 0.5) * (np.pi / 256)


def _chebyshev(values: Callable[[Array], Array], degree: int, low: float, high: float) -> Array:
    """Return the Chebyshev coefficients of `values` on [low, high]."""
    return chebinterpolate(lambda t: values(low + (t + 1) * (high - low) / 2), degree)


def _evaluate(coefficients: Array, x: Array, low: float, high: float) -> Array:
    result: Array = chebval((2 * x - low - high) / (high - low), coefficients)
    return result


def _j_of_order(order: int, x: Array) -> Array:
    result: Array = np.cos(order * _ANGLES - np.multiply.outer(x, np.sin(_ANGLES))).mean(-1)
    return result


def _ie_of_order(order: int, x: Array) -> Array:
    """Compute exp(-x) I(x), the scaled modified Bessel function of the first kind, for x >= 0."""
    result: Array = (np.exp(np.multiply.outer(x, np.cos(_ANGLES) - 1)) * np.cos(order * _ANGLES)).mean(-1)
    return result


def _y0_entire(x: Array) -> Array:
    """Compute the entire part of Y0: Y0(x) - 2/pi ln(x/2) J0(x)."""
    total = np.euler_gamma * _j_of_order(0, x)
    for k in range(1, 40):
        total -= 2 * (-1) ** k / k * _j_of_order(2 * k, x)
    result: Array = 2 / np.pi * total
    return result


def _y1_entire(x: Array) -> Array:
    """Compute the entire part of x Y1: x Y1(x) - 2/pi ln(x/2) x J1(x)."""
    total = (np.euler_gamma - 1) * _j_of_order(1, x)
    for k in range(1, 40):
        total -= (-1) ** k * (1 + 2 * k) / (k * (k + 1)) * _j_of_order(2 * k + 1, x)
    result: Array = x * 2 / np.pi * total - 2 / np.pi * _j_of_order(0, x)
    return result


def _ke_of_order(order: int, x: Array) -> Array:
    """Compute sqrt(x) exp(x) K(x) for x >= 2."""
    t = np.arange(1, 500) * 0.01
    terms = np.exp(-np.multiply.outer(x, np.cosh(t) - 1)) * np.cosh(order * t)
    result: Array = np.sqrt(x) * 0.01 * (0.5 + terms.sum(-1))
    return result


@functools.cache
def _table(name: str, order: int) -> Array:
    """Return the Chebyshev coefficients of a Bessel function on its middle range; odd functions are divided by x first.

    Args:
        name: "j", "y", "i" or "k".
        order: 0 or 1.
    """
    if name == "j":
        return _chebyshev(lambda x: _j_of_order(order, x) / x**order, 60, 0, _FAR)
    if name == "y":
        return _chebyshev(_y1_entire if order else _y0_entire, 60, 0, _FAR)
    if name == "i":
        return _chebyshev(lambda x: _ie_of_order(order, x) / x**order, 60, 0, _FAR)
    return _chebyshev(lambda u: _ke_of_order(order, 1 / u), 30, 1 / _FAR, 1 / _NEAR)


def _hankel(order: int, x: Array, sign: int) -> tuple[Array, Array]:
    """Return the sums of even and of odd terms of Hankel's asymptotic expansion; their signs alternate if `sign` is -1."""
    mu = 4 * order * order
    term = np.ones_like(x)
    sums = [np.ones_like(x), np.zeros_like(x)]
    for k in range(1, 26):
        term = term * ((mu - (2 * k - 1) ** 2) / (8 * k)) / x
        sums[k % 2] += term * (sign if k % 4 in (2, 3) else 1)
    return sums[0], sums[1]


def _wave(order: int, x: Array) -> tuple[Array, Array]:
    """Compute (J(x), Y(x)) for x > 25, by Hankel's asymptotic expansion."""
    p, q = _hankel(order, x, -1)
    # cos and sin of x - pi/4 and x - 3 pi/4 by the sine and cosine of x itself, which lose nothing for large x.
    sine, cosine = np.sin(x), np.cos(x)
    c, s = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -sine - cosine)
    scale = 1 / np.sqrt(np.pi * x)
    return scale * (p * c - q * s), scale * (p * s + q * c)


def _first_kind(order: int, x: Array) -> Array:
    size = np.abs(x)
    near = np.minimum(size, _FAR)
    result: Array = _evaluate(_table("j", order), near, 0, _FAR) * near**order
    if (far := size > _FAR).any():
        result[far] = _wave(order, size[far])[0]
    result[np.isinf(size)] = 0
    result = np.where(x < 0, -result, result) if order else result
    result[np.isnan(x)] = np.nan
    return result


def j0(x: Array) -> Array:
    """Compute the Bessel function J of order 0."""
    return _first_kind(0, x)


def j1(x: Array) -> Array:
    """Compute the Bessel function J of order 1."""
    return _first_kind(1, x)


def _second_kind(order: int, x: Array) -> Array:
    near = np.clip(x, 0, _FAR)
    entire = _evaluate(_table("y", order), near, 0, _FAR)
    if order:
        entire = np.where(near < 1e-5, -2 / np.pi, entire) / near
    result = entire + 2 / np.pi * np.log(near / 2) * _first_kind(order, near)
    if (far := x > _FAR).any():
        result[far] = _wave(order, x[far])[1]
    result[np.isposinf(x)] = 0
    result[x == 0] = -np.inf
    result[~(x >= 0)] = np.nan
    return result


def y0(x: Array) -> Array:
    """Compute the Bessel function Y of order 0; minus infinity at 0, NaN below."""
    return _second_kind(0, x)


def y1(x: Array) -> Array:
    """Compute the Bessel function Y of order 1; minus infinity at 0, NaN below."""
    return _second_kind(1, x)


def _modified_first_kind(order: int, x: Array) -> Array:
    size = np.abs(x)
    near = np.minimum(size, _FAR)
    result: Array = _evaluate(_table("i", order), near, 0, _FAR) * near**order
    if (far := size > _FAR).any():
        even, odd = _hankel(order, size[far], 1)
        result[far] = (even - odd) / np.sqrt(2 * np.pi * size[far])
    if order:
        result = np.where(x < 0, -result, result)
    result[np.isnan(x)] = np.nan
    return result


def i0e(x: Array) -> Array:
    """Compute exp(-|x|) I(x), order 0."""
    return _modified_first_kind(0, x)


def i1e(x: Array) -> Array:
    """Compute exp(-|x|) I(x), order 1."""
    return _modified_first_kind(1, x)


def i0(x: Array) -> Array:
    """Compute the modified Bessel function I of order 0."""
    result: Array = i0e(x) * np.exp(np.abs(x))
    return result


def i1(x: Array) -> Array:
    """Compute the modified Bessel function I of order 1."""
    result: Array = i1e(x) * np.exp(np.abs(x))
    return result


def _small_k(order: int, x: Array) -> Array:
    """Compute the modified Bessel function K for 0 < x <= 2 by its power series (A&S 9.6.11, 9.6.13)."""
    quarter = x * x / 4
    digamma, term = -np.euler_gamma, np.ones_like(x)
    first, total = np.zeros_like(x), np.zeros_like(x)
    for k in range(20):
        if order == 0:
            first, total = first + term, total + digamma * term
        else:
            first = first + term / (k + 1)
            total = total + (2 * digamma + 1 / (k + 1)) * term / (k + 1)
        digamma += 1 / (k + 1)
        term = term * quarter / ((k + 1) ** 2)
    logarithm = np.log(x / 2)
    result: Array = total - logarithm * first if order == 0 else 1 / x + logarithm * (x / 2) * first - x / 4 * total
    return result


def _second_modified(order: int, x: Array, scaled: bool) -> Array:
    result = np.full_like(x, np.nan)
    near, beyond = (x > 0) & (x <= _NEAR), x > _NEAR
    result[near] = _small_k(order, x[near]) * (np.exp(x[near]) if scaled else 1)
    value = x[beyond]
    even, odd = _hankel(order, np.maximum(value, _FAR), 1)
    middle = _evaluate(_table("k", order), 1 / np.minimum(value, _FAR), 1 / _FAR, 1 / _NEAR)
    product = np.where(value > _FAR, np.sqrt(np.pi / 2) * (even + odd), middle) / np.sqrt(value)
    result[beyond] = product if scaled else product * np.exp(-value)
    result[x == 0] = np.inf
    return result


def k0(x: Array) -> Array:
    """Compute the modified Bessel function K of order 0; infinity at 0, NaN below."""
    return _second_modified(0, x, False)


def k0e(x: Array) -> Array:
    """Compute exp(x) K(x), order 0."""
    return _second_modified(0, x, True)


def k1(x: Array) -> Array:
    """Compute the modified Bessel function K of order 1; infinity at 0, NaN below."""
    return _second_modified(1, x, False)


def k1e(x: Array) -> Array:
    """Compute exp(x) K(x), order 1."""
    return _second_modified(1, x, True)
