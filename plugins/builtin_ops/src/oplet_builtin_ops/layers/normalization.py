"""RMS and layer normalization of rows, as numpy calls that keep a block of rows in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.layers.program import Call

__all__ = ["normalized_rows"]

#: The values of a block.
_BLOCK = 1 << 16


def normalized_rows(
    x: Array, y: Array, work: Array, epsilon: float, weight: Array, bias: Array | None = None, *, centred: bool = False
) -> Iterator[Call]:
    """Yield numpy calls that compute y = x / sqrt(mean(x ** 2) + epsilon) * weight + bias for each row.

    Args:
        x: (rows, length), of single precision.
        y: receives the result: of the shape and type of x, or x itself.
        work: scratch, (rows, 1), of the same type.
        epsilon: the number that is added to the mean of the squares.
        weight: (length,).
        bias: (length,); None for none.
        centred: whether the row's mean is subtracted first.
    """
    rows, length = x.shape
    step = max(1, _BLOCK // max(length, 1))
    ones = np.ones((length, 1), np.float32)
    share, least = np.array(1 / max(length, 1), np.float32), np.array(epsilon, np.float32)
    for start in range(0, rows, step):
        source, result, each = (array[start : start + step] for array in (x, y, work))
        if centred:
            yield partial(np.matmul, out=each), (source, ones)
            yield np.multiply, (each, share, each)
            yield np.subtract, (source, each, result)
            source = result
        yield partial(np.matmul, out=each[:, :, None]), (source[:, None, :], source[:, :, None])
        yield np.multiply, (each, share, each)
        yield np.add, (each, least, each)
        yield np.sqrt, (each, each)
        yield np.reciprocal, (each, each)
        yield np.multiply, (source, each, result)
        yield np.multiply, (result, weight, result)
        if bias is not None:
            yield np.add, (result, bias, result)
