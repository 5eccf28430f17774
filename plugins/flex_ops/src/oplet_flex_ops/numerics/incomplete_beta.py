"""The regularized incomplete beta function in double precision, by its continued fraction (DLMF 8.17.22)."""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_flex_ops.numerics.gamma import lgamma

__all__ = ["betainc"]


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
