"""Integrals of Gaussians, exponentials and logarithms in double precision: erf, Dawson, Fresnel, Ei and the dilogarithm."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate, chebval

from oplet.kernels.arrays import Array
from oplet_flex_ops.numerics.gamma import bernoulli

__all__ = ["dawsn", "erf", "erfc", "erfinv", "expint", "fresnel_cos", "fresnel_sin", "ndtri", "spence"]

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


@functools.cache
def _erf_table() -> Array:
    """Return the Chebyshev coefficients of erf(x) / x as a function of x^2 in [0, 1]."""
    return chebinterpolate(lambda t: np.array([math.erf(math.sqrt(u)) / math.sqrt(u) for u in (t + 1) / 2]), 19)


@functools.cache
def _erfcx_table() -> Array:
    """Return the Chebyshev coefficients of exp(x^2) erfc(x) as a function of t = 2 / (2 + x), for x >= 0."""

    def value(t: float) -> float:
        x = 2 / t - 2
        if x < 12:
            return math.exp(x * x) * math.erfc(x)
        total, term = 1.0, 1.0
        for k in range(1, 20):
            term *= -(2 * k - 1) / (2 * x * x)
            total += term
        return total / (x * math.sqrt(math.pi))

    return chebinterpolate(lambda t: np.array([value(u) for u in (t + 1) / 2]), 40)


def _erfc_positive(x: Array) -> Array:
    result: Array = chebval(4 / (2 + x) - 1, _erfcx_table()) * _exp_minus_square(x)
    return result


def _exp_minus_square(x: Array) -> Array:
    """Compute exp(-x^2), with x^2 as a sum of two doubles, since its rounding error would be amplified."""
    head = np.round(x * 4096) / 4096
    result: Array = np.exp(-head * head) * np.exp(-(x - head) * (x + head))
    return np.where(np.isinf(x), 0.0, result)


def erf(x: Array) -> Array:
    """Compute the error function erf(x)."""
    size = np.abs(x)
    near = x * chebval(np.minimum(x * x, 1) * 2 - 1, _erf_table())
    far = np.copysign(1 - _erfc_positive(size), x)
    return np.where(size < 1, near, np.where(np.isnan(x), np.nan, far))


def erfc(x: Array) -> Array:
    """Compute 1 - erf(x), to full precision where it is small."""
    tail = _erfc_positive(np.abs(x))
    result = np.where(x < 0.5, np.where(x < -1, 2 - tail, 1 - erf(np.clip(x, -1, 0.5))), tail)
    return np.where(np.isnan(x), np.nan, result)


def _inverse_erfc(q: Array) -> Array:
    """Return the y >= 0 with erfc(y) = q, for q in (0, 1]."""
    w = -np.log(q)
    # Where q is small, erfc(y) is about exp(-y^2) / (y sqrt(pi)).
    y = np.sqrt(np.maximum(w - 0.5 * np.log(np.pi * np.maximum(w, 0.3)), 0.0))
    y = np.where(q > 0.5, (1 - q) / _TWO_OVER_ROOT_PI, y)
    for _ in range(5):
        # Halley's method on log(erfc(y)) would need another quotient; on erfc itself relative to q it converges cubically.
        error = (_erfc_positive(y) - q) / (_TWO_OVER_ROOT_PI * _exp_minus_square(y))
        error = np.where(np.isfinite(error), error, 0.0)
        y = y + error / (1 + y * np.clip(error, -0.5 / np.maximum(y, 0.1), None))
        y = np.maximum(y, 0.0)
    return y


def erfinv(x: Array) -> Array:
    """Compute the inverse of erf; infinite at -1 and 1, NaN beyond."""
    size = np.abs(x)
    y = _inverse_erfc(np.clip(1 - size, 1e-320, 1))
    # Near 0 the difference 1 - x has lost digits; Newton's step on erf restores them.
    small = size < 0.5
    y = np.where(small, y - (erf(y) - size) / (_TWO_OVER_ROOT_PI * np.exp(-y * y)), y)
    y = np.copysign(np.where(size == 1, np.inf, y), x)
    return np.where(size <= 1, np.where(x == 0, x, y), np.nan)


def ndtri(p: Array) -> Array:
    """Compute the quantile (inverse CDF) of the normal distribution; infinite at 0 and 1, NaN beyond."""
    lower = np.minimum(p, 1 - p)
    y = math.sqrt(2) * _inverse_erfc(np.clip(2 * lower, 1e-320, 1))
    middle = np.abs(p - 0.5) < 0.25
    y = np.where(middle, math.sqrt(2) * erfinv(np.where(middle, np.abs(2 * p - 1), 0.0)), y)
    y = np.where(p < 0.5, -y, y)
    y = np.where(p == 0, -np.inf, np.where(p == 1, np.inf, y))
    return np.where((p >= 0) & (p <= 1), y, np.nan)


def dawsn(x: Array) -> Array:
    """Compute Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x, by Rybicki's method (Computers in Physics
    3, 1989).
    """
    size = np.abs(x)
    step = 0.2
    near = np.minimum(size, 20.0)
    even = 2 * np.round(near / (2 * step))
    offset = near - even * step
    total = np.zeros_like(near)
    for n in range(-37, 38, 2):
        total = total + np.exp(-((offset - n * step) ** 2)) / (even + n)
    inverse = 1 / np.maximum(size, 1) ** 2
    far = np.ones_like(size)
    for k in range(12, 0, -1):
        far = 1 + far * (2 * k - 1) / 2 * inverse
    result = np.where(size < 10, total / math.sqrt(math.pi), far / (2 * size))
    square = size * size
    result = np.where(size < 0.05, size * (1 - square * (2 / 3) * (1 - square * (2 / 5) * (1 - square * (2 / 7)))), result)
    return np.where(np.isnan(x), np.nan, np.copysign(np.where(np.isinf(size), 0.0, result), x))


def expint(x: Array) -> Array:
    """Compute the exponential integral Ei(x), the principal value of the integral of exp(t) / t from minus infinity to x."""
    size = np.abs(x)
    small = np.where(x > 0, np.minimum(x, 40.0), np.maximum(x, -2.0))
    total, term = np.zeros_like(x), np.ones_like(x)
    for k in range(1, 140):
        term = term * small / k
        total = total + term / k
    series = np.euler_gamma + np.log(np.abs(small)) + total
    inverse = 1 / np.maximum(size, 40.0)
    sum_, term = np.ones_like(x), np.ones_like(x)
    for k in range(1, 38):
        term = term * k * inverse
        sum_ = sum_ + term
    asymptotic = np.exp(x) / x * sum_
    # E1 of -x by its continued fraction, from the back.
    point = np.maximum(-x, 2.0)
    fraction = np.zeros_like(x)
    for k in range(80, 0, -1):
        fraction = k * k / (point + 2 * k + 1 - fraction)
    tail = -np.exp(-point) / (point + 1 - fraction)
    result = np.where(x >= 40, asymptotic, np.where(x < -2, tail, series))
    result = np.where(np.isposinf(x), np.inf, np.where(np.isneginf(x), 0.0, result))
    return np.where(x == 0, -np.inf, result)


def spence(x: Array) -> Array:
    """Compute the dilogarithm of 1 - x, minus the integral of log(t) / (t - 1) from 1 to x; NaN below 0."""
    inverted = x > 1.5
    y = np.where(inverted, 1 / x, x)
    reflected = y < 0.5
    z = np.where(reflected, 1 - y, y)
    u = -np.log(z)
    square = u * u
    total, power = u - square / 4, u * square
    for k, number in enumerate(bernoulli(14), 1):
        total = total + number / math.factorial(2 * k + 1) * power
        power = power * square
    logs = np.log(np.where(y > 0, y, 1.0)) * np.log(np.where(y < 1, 1 - y, 0.5))
    total = np.where(reflected, np.pi**2 / 6 - logs - total, total)
    total = np.where(inverted, -0.5 * np.log(x) ** 2 - total, total)
    return np.where(x >= 0, np.where(np.isposinf(x), -np.inf, total), np.nan)


_FRESNEL_NEAR = 1.5


@functools.cache
def _fresnel_tables() -> tuple[Array, Array]:
    """Return Chebyshev tables of Fresnel's auxiliary functions f(z) z and g(z) z^3 in (1.5 / z)^2 (DLMF 7.7.10, 7.7.11)."""
    s = (np.arange(1200) + 0.5) * 0.01

    def integral(u: Array, moment: int) -> Array:
        z = _FRESNEL_NEAR / np.sqrt(np.maximum(u, 1e-6))
        weight = s**moment / (s**4 / z[:, None] ** 4 + 1)
        # s is scaled by z, so that the Gaussian stays as wide for every z.
        total = (weight * np.exp(-np.pi / 2 * s**2)).sum(-1) * 0.01
        result: Array = math.sqrt(2) / np.pi * total
        return result

    return (chebinterpolate(lambda t: integral((t + 1) / 2, 0), 40), chebinterpolate(lambda t: integral((t + 1) / 2, 2), 40))


def _fresnel(x: Array) -> tuple[Array, Array]:
    size = np.abs(x)
    near = np.minimum(size, _FRESNEL_NEAR)
    cosine, sine, term = np.zeros_like(x), np.zeros_like(x), np.array(near)
    for k in range(30):
        cosine = cosine + term / (4 * k + 1)
        term = term * (np.pi / 2) * near * near / (2 * k + 1)
        sine = sine + term / (4 * k + 3)
        term = -term * (np.pi / 2) * near * near / (2 * k + 2)
    far = np.maximum(size, _FRESNEL_NEAR)
    u = 2 * (_FRESNEL_NEAR / far) ** 2 - 1
    tables = _fresnel_tables()
    f, g = chebval(u, tables[0]) / far, chebval(u, tables[1]) / far**3
    # pi z^2 / 2 modulo 2 pi, by z^2 modulo 4; the square's rounding error counts for large z.
    head = np.where(far < 2**25, np.round(far * 2**10) / 2**10, far)
    turns = np.fmod(head * head, 4) + np.fmod((far - head) * (far + head), 4)
    angle = np.pi / 2 * turns
    c, s = np.cos(angle), np.sin(angle)
    inside = size < _FRESNEL_NEAR
    result_c = np.where(inside, cosine, 0.5 + f * s - g * c)
    result_s = np.where(inside, sine, 0.5 - f * c - g * s)
    infinite = np.isinf(size)
    missing = 0 * np.where(infinite, 0.0, x)
    return (
        np.copysign(np.where(infinite, 0.5, result_c), x) + missing,
        np.copysign(np.where(infinite, 0.5, result_s), x) + missing,
    )


def fresnel_cos(x: Array) -> Array:
    """Compute the integral of cos(pi t^2 / 2) from 0 to x."""
    return _fresnel(x)[0]


def fresnel_sin(x: Array) -> Array:
    """Compute the integral of sin(pi t^2 / 2) from 0 to x."""
    return _fresnel(x)[1]
