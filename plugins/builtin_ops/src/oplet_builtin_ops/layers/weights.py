"""Shared parts of layers with weights: bias checks, transposes, row sums, dense forms of sparse weights."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from oplet import Node, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array

#: Modules that only nodes with sparse weights need; builds leave them out if the models have no such node.
VARIANTS = {"oplet_builtin_ops.layers.sparse": {"sparse": True}}

__all__ = ["ensure_bias", "row_sums", "sums_and_widths", "transposed", "weight_data"]

#: Matrices of more values are transposed, or summed, in blocks; the rows of a block are a few cache lines of the transpose.
_LARGE: Final = 1 << 16
_BLOCK: Final = 64
#: Values at distances of a multiple of so many bytes compete for the same sets of the first-level cache.
_CLASHING: Final = 256
#: The most bytes whose sum is surely exact in float32.
_EXACT: Final = 1 << 16


def ensure_bias(bias: Tensor | None, channels: int, *types: TensorType) -> None:
    """Check a bias's type and length.

    Raises:
        EnsureError: the type or length is wrong.
    """
    if bias is None:
        return
    ensure_type(bias, *types)
    ensure(bias.size == channels, lambda: f"{bias} must have {channels} values, one for each output channel, not {bias.size}.")


def transposed(matrices: Array, dtype: Any) -> Array:
    """Return contiguous transposes of matrices in type `dtype`; blocked if they are larger than the cache."""
    turned = matrices.swapaxes(-1, -2)
    rows = matrices.shape[-2]
    # Values at distances of a multiple of some cache lines evict one another from the cache.
    large = _LARGE if matrices.strides[-2] % _CLASHING else _LARGE // 4
    if math.prod(matrices.shape) < large or rows <= _BLOCK:
        return np.ascontiguousarray(turned, dtype)
    result = np.empty(turned.shape, dtype)
    for start in range(0, rows, _BLOCK):
        result[..., start : start + _BLOCK] = turned[..., start : start + _BLOCK]
    return result


def row_sums(rows: Array) -> Array:
    """Return the sum of each row of an integer matrix, as int64."""
    count, depth = rows.shape
    if rows.dtype.itemsize > 1 or depth > _EXACT:
        return np.asarray(rows.sum(axis=1, dtype=np.int64))
    # BLAS adds floats faster than numpy adds small integers, and these sums are exact.
    sums, ones = np.empty(count, np.int64), np.ones(depth, np.float32)
    block = max(1, _LARGE // max(depth, 1))
    for start in range(0, count, block):
        sums[start : start + block] = rows[start : start + block].astype(np.float32) @ ones
    return sums


def sums_and_widths(rows: Array) -> tuple[Array, Array]:
    """Return each int8 row's sum, and its sum of magnitudes, both int64; one conversion to float serves both."""
    count, depth = rows.shape
    if depth > _EXACT:
        # The magnitude of -128 wraps around to -128, whose bits are 128 as an unsigned number.
        return row_sums(rows), row_sums(np.absolute(rows).view(np.uint8))
    sums, widths, ones = np.empty(count, np.int64), np.empty(count, np.int64), np.ones(depth, np.float32)
    block = max(1, _LARGE // max(depth, 1))
    for start in range(0, count, block):
        floats = rows[start : start + block].astype(np.float32)
        sums[start : start + block] = floats @ ones
        widths[start : start + block] = np.absolute(floats, floats) @ ones
    return sums, widths


def weight_data(node: Node, weights: Tensor) -> Array:
    """Return the weights' values; sparse weights are converted to dense once and cached."""
    sparsity = weights.sparsity
    if sparsity is None:
        return weights.data
    from oplet_builtin_ops.layers.sparse import densify

    return node.cached(
        ("dense weights", weights.index), [weights], lambda: densify(weights.data, sparsity, weights.shape), shared=True
    )
