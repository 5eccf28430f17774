"""The gamma function's family in double precision: logarithm, derivatives, Hurwitz's zeta function and the incomplete integrals."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate, chebval

from oplet.kernels.arrays import Array

__all__ = ["digamma", "igamma", "igammac", "lgamma", "polygamma", "zeta"]


def betainc(a: Array, b: Array, x: Array) -> Array:
    """Compute the regularized incomplete beta function; NaN unless a, b > 0 and 0 <= x <= 1."""
    result = np.full_like(x, np.nan)
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1) & np.isfinite(a) & np.isfinite(b)
    p, q, point = a[valid], b[valid], x[valid]
    swapped = point > (p + 1) / (p + q + 2)
    p, q, t = np.where(swapped, q, p), np.where(swapped, p, q), np.where(swapped, 1 - point, point)
    logarithm = p * np.log(t) + q * np.log1p(-t) - (lgamma(p) + lgamma(q) - lgamma(p + q))
    part = np.where(t == 0, 0.0, np.exp(logarithm) / p) * _fraction(p, q, t)
    result[valid] = np.clip(np.where(swapped, 1 - part, part), 0, 1)
    return result


def _fraction(a: Array, b: Array, x: Array) -> Array:
    tiny = 1e-300
    c = np.ones_like(x)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < tiny, tiny, d)
    result = np.array(d)
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 + numerator * d
            d = 1 / np.where(np.abs(d) < tiny, tiny, d)
            c = 1 + numerator / c
            c = np.where(np.abs(c) < tiny, tiny, c)
            factor = c * d
            result = result * factor
        if not (np.abs(factor - 1) > 1e-16).any():
            break
    return result


_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


@functools.cache
def bernoulli(count: int) -> tuple[float, ...]:
    """Return the first `count` Bernoulli numbers of even index: B2, B4, ..."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        numbers.append(-sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0)) / (m + 1))
    return tuple(float(numbers[2 * k]) for k in range(1, count + 1))


@functools.cache
def _near_table() -> Array:
    """Return the Chebyshev coefficients of lgamma(x) / ((x - 1) (x - 2)) on [0.5, 3], where this quotient has no zero."""

    def values(t: Array) -> Array:
        # The nodes of an even number of points miss 1 and 2.
        return np.array([math.lgamma(x) / ((x - 1) * (x - 2)) for x in 0.5 + (t + 1) * 1.25])

    return chebinterpolate(values, 41)


def _stirling(x: Array) -> Array:
    result = (x - 0.5) * np.log(x) - x + _HALF_LOG_TWO_PI
    inverse = 1 / x
    power, square = inverse, inverse * inverse
    for k, number in enumerate(bernoulli(8), 1):
        result = result + number / (2 * k * (2 * k - 1)) * power
        power = power * square
    return result


def _lgamma_positive(x: Array) -> Array:
    result = np.empty_like(x)
    near = (x >= 0.5) & (x <= 3)
    value = x[near]
    result[near] = chebval((value - 1.75) / 1.25, _near_table()) * (value - 1) * (value - 2)
    value = x[~near]
    steps = np.clip(np.ceil(9 - value), 0, 9)
    product = np.ones_like(value)
    for k in range(9):
        product = np.where(k < steps, product * (value + k), product)
    result[~near] = _stirling(value + steps) - np.log(product)
    return result


def lgamma(x: Array) -> Array:
    """Compute log(|gamma(x)|); infinity at 0 and the negative integers."""
    result = np.empty_like(x)
    left = x < 0.5
    result[~left] = _lgamma_positive(x[~left])
    value = x[left]
    fraction = value - np.round(value)
    result[left] = np.log(np.pi / np.abs(np.sin(np.pi * fraction))) - _lgamma_positive(1 - value)
    result[np.isinf(x) | ((x <= 0) & (x == np.floor(x)))] = np.inf
    return result


def digamma(x: Array) -> Array:
    """Compute the logarithmic derivative of gamma; NaN at the negative integers, minus infinity at 0 from the right."""
    left = x <= 0
    value = np.where(left, 1 - x, x)
    result = np.zeros_like(x)
    for _ in range(10):
        small = value < 10
        result = np.where(small, result - 1 / value, result)
        value = np.where(small, value + 1, value)
    inverse = 1 / value
    square = power = inverse * inverse
    result = result + np.log(value) - 0.5 * inverse
    for k, number in enumerate(bernoulli(8), 1):
        result = result - number / (2 * k) * power
        power = power * square
    fraction = x - np.round(x)
    result = np.where(left, result - np.pi / np.tan(np.pi * fraction), result)
    result = np.where(left & (x == np.floor(x)), np.nan, result)
    return np.where(np.isposinf(x), np.inf, result)


def zeta(x: Array, q: Array) -> Array:
    """Compute Hurwitz's zeta function, the sum of (q + k)^-x, by the Euler-Maclaurin formula.

    NaN for x < 1 and for a q <= 0 whose power is not real; infinity at x = 1 and at poles.
    """
    steps = np.where(q < 0, np.ceil(-q), 0)
    result = np.zeros_like(x)
    # Terms of negative arguments, one by one: whoever asks for thousands of them asks for a limit that single precision does not have.
    base = np.array(q)
    for _ in range(int(min(np.max(steps, initial=0, where=np.isfinite(steps)), 10_000))):
        negative = base < 0
        result = np.where(negative, result + np.power(base, -x), result)
        base = np.where(negative, base + 1, base)
    for _ in range(12):
        result = result + np.power(base, -x)
        base = base + 1
    power = np.power(base, -x)
    result = result + power * base / (x - 1) + 0.5 * power
    factor, scale = x * power / base, 1.0
    for k, number in enumerate(bernoulli(12), 1):
        result = result + number * factor / math.factorial(2 * k) * scale
        factor = factor * (x + 2 * k - 1) * (x + 2 * k) / (base * base)
    result = np.where(np.isposinf(q), 0.0, result)
    result = np.where(x == 1, np.inf, result)
    pole = (q <= 0) & (q == np.floor(q))
    result = np.where(pole, np.where((x % 2 == 0), np.inf, np.nan), result)
    undefined = (x < 1) | ((q < 0) & ~pole & (x != np.floor(x))) | np.isnan(x) | np.isnan(q)
    return np.where(undefined, np.nan, result)


def polygamma(n: Array, x: Array) -> Array:
    """Compute the n-th derivative of digamma at x; NaN if n is not a natural number."""
    whole = (n >= 0) & (n == np.floor(n))
    order = np.where(whole & (n > 0), n, 1.0)
    sign = np.where(order % 2 == 1, 1.0, -1.0)
    result = sign * np.exp(lgamma(order + 1)) * zeta(order + 1, x)
    return np.where(whole, np.where(n == 0, digamma(x), result), np.nan)


def _lower_series(a: Array, x: Array) -> Array:
    """Sum x^k / ((a + 1) ... (a + k)); times x^a e^-x / gamma(a + 1) it is the lower incomplete gamma function."""
    total, term, divisor = np.ones_like(a), np.ones_like(a), np.array(a)
    for _ in range(2000):
        divisor = divisor + 1
        term = term * x / divisor
        total = total + term
        if not (term > total * 1e-17).any():
            break
    return total


def _upper_fraction(a: Array, x: Array) -> Array:
    """Evaluate the continued fraction of the upper incomplete gamma function, without the factor x^a e^-x / gamma(a), by Lentz's
    method.
    """
    tiny = 1e-300
    b = x + 1 - a
    c, d = np.full_like(a, 1 / tiny), 1 / b
    result = np.array(d)
    for k in range(1, 2000):
        numerator = -k * (k - a)
        b = b + 2
        d = numerator * d + b
        d = 1 / np.where(np.abs(d) < tiny, tiny, d)
        c = b + numerator / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        factor = c * d
        result = result * factor
        if not (np.abs(factor - 1) > 1e-16).any():
            break
    return result


def _incomplete(a: Array, x: Array, upper: bool) -> Array:
    valid = (a > 0) & (x >= 0) & np.isfinite(a) & np.isfinite(x)
    result = np.full_like(a, np.nan)
    # e^-x x^a / gamma(a + 1): for large a the logarithms nearly cancel, Stirling's formula says by how much.
    shape, point = a[valid], x[valid]
    large = shape > 50
    ratio = (point - shape) / shape
    deviation = np.where(np.abs(ratio) < 0.5, _log1pmx(np.clip(ratio, -0.5, 0.5)), np.log(point / shape) - ratio)
    correction = np.zeros_like(shape)
    power = 1 / shape
    for k, number in enumerate(bernoulli(6), 1):
        correction = correction + number / (2 * k * (2 * k - 1)) * power
        power = power / (shape * shape)
    near_large = shape * deviation - 0.5 * np.log(2 * np.pi * shape) - correction
    plain = shape * np.log(point) - point - lgamma(shape + 1)
    factor = np.exp(np.where(large, near_large, plain))
    factor = np.where(point == 0, 0.0, factor)
    below = point < shape + 1
    lower = np.empty_like(shape)
    lower[below] = factor[below] * _lower_series(shape[below], point[below])
    above = ~below
    tail = np.empty_like(shape)
    tail[above] = factor[above] * shape[above] * _upper_fraction(shape[above], point[above])
    tail[below] = 1 - lower[below]
    lower[above] = 1 - tail[above]
    result[valid] = np.clip(tail if upper else lower, 0, 1)
    far = (a > 0) & np.isposinf(x) & np.isfinite(a)
    result[far] = 0.0 if upper else 1.0
    return result


def _log1pmx(x: Array) -> Array:
    """Compute log(1 + x) - x for |x| <= 0.5 without cancellation, by the series of atanh."""
    s = x / (2 + x)
    square = s * s
    total, power = np.zeros_like(x), s * square
    for k in range(3, 45, 2):
        total = total + power / k
        power = power * square
    # log(1 + x) = 2 (s + s^3/3 + ...), and 2 s - x = -x s
    result: Array = 2 * total - x * s
    return result


def igamma(a: Array, x: Array) -> Array:
    """Compute the regularized lower incomplete gamma function; NaN unless a > 0 and x >= 0."""
    return _incomplete(a, x, False)


def igammac(a: Array, x: Array) -> Array:
    """Compute the regularized upper incomplete gamma function, 1 - igamma."""
    return _incomplete(a, x, True)
