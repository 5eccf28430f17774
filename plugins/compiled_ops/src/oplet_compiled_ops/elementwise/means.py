"""Kernels of MEAN over adjacent axes: of integers as sums times a factor that includes the count, of floats as sums divided by the count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.elementwise.fixed_point import scaled
from oplet_compiled_ops.library.lazy import emitted, inlined

__all__ = ["MEAN_OF_COLUMNS", "MEAN_OF_LONG_COLUMNS", "MEAN_OF_ROWS", "SUM_OF_ROWS"]

column_means = emitted("reductions:column_means")

_in_any_order: Callable[..., Any] = inlined(error_model="numpy", fastmath={"reassoc", "nsz"}, boundscheck=False)


@_in_any_order
def _total(x):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for i in range(x.size):
        total += x[i]
    return total


def MEAN_OF_ROWS(x, out, columns):  # type: ignore[no-untyped-def]
    """Compute the mean of each row of `columns` numbers of a flat float32 array."""
    count = np.float32(columns)
    for row in range(out.size):
        out[row] = _total(x[row * columns : (row + 1) * columns]) / count


def SUM_OF_ROWS(x, out, columns):  # type: ignore[no-untyped-def]
    """Compute the sum of each row of `columns` numbers of a flat float32 array."""
    for row in range(out.size):
        out[row] = _total(x[row * columns : (row + 1) * columns])


def MEAN_OF_COLUMNS(x, out):  # type: ignore[no-untyped-def]
    """Compute the mean over the middle axis of a float32 array (outer, rows, columns), adding rows in order."""
    count = np.float32(x.shape[1])
    for outer in range(x.shape[0]):
        target, first = out[outer], x[outer, 0]
        for i in range(target.size):
            target[i] = first[i]
        for row in range(1, x.shape[1]):
            source = x[outer, row]
            for i in range(target.size):
                target[i] += source[i]
        for i in range(target.size):
            target[i] /= count


def MEAN_OF_LONG_COLUMNS(x, out):  # type: ignore[no-untyped-def]
    """Compute the mean over the middle axis of a float32 array (outer, rows, columns) of many rows, by four interleaved partial
    sums.
    """
    for outer in range(x.shape[0]):
        column_means(x[outer].ctypes.data, x.shape[1], x.shape[2], out[outer].ctypes.data)


def _mean(x, out, sums, offset, multiplier, left, half, below, right, zero, low, high):  # type: ignore[no-untyped-def]
    for outer in range(x.shape[0]):
        for i in range(sums.size):
            sums[i] = -offset
        for row in range(x.shape[1]):
            source = x[outer, row]
            for i in range(sums.size):
                sums[i] += source[i]
        target = out[outer]
        for i in range(sums.size):
            target[i] = min(max(scaled(sums[i], multiplier, left, half, below, right) + zero, low), high)
