"""Blockwise quantized weights: each row is divided into blocks with a scale each, as in small language models.

XNNPACK runs them in LiteRT. It supports int4 weights with float16 scales above zero, in blocks of a multiple of 32 values, and
stores their scales as bfloat16; such weights have these scales here too. All others have the scales of the file. Zero points are
ignored, as in LiteRT. The last block of a row may be shorter.

Numerics: xnn_define_blockwise_quantized_tensor_value_v2 of XNNPACK, EvalBlockwise4Bit in tflite/kernels/fully_connected.cc
"""

from __future__ import annotations

import math

import numpy as np

from oplet import Tensor, TensorType, ensure
from oplet.kernels.arrays import Array

__all__ = ["block_scales", "block_size", "ensure_blocks", "follow_xnnpack", "from_blocks", "given_scales"]

#: XNNPACK's block lengths are multiples of this.
_UNIT = 32


def block_size(weights: Tensor) -> int:
    """Return the number of weights that share a scale if quantized blockwise; else 0."""
    return 0 if weights.quantization is None else weights.quantization.block_size


def given_scales(weights: Tensor) -> Array:
    """Return the scales stored in the model, float32, shape (rows of weights, blocks per row)."""
    scales: Array = np.empty(0, np.float32) if weights.quantization is None else weights.quantization.scales
    return scales.reshape(math.prod(weights.shape[:-1]), -1)


def ensure_blocks(weights: Tensor) -> None:
    """Check that blockwise weights have a finite non-negative scale for each block of each row.

    Raises:
        EnsureError: a scale is missing, negative or not finite.
    """
    size = block_size(weights)
    count = 0 if weights.quantization is None else weights.quantization.scales.size
    ensure(weights.ndim > 0, lambda: f"{weights} has no rows that could be cut into blocks of {size}.")
    wanted = math.prod(weights.shape[:-1]) * -(-weights.shape[-1] // size)
    ensure(count == wanted, lambda: f"{weights} has {count} scales for blocks of {size}; its rows are made of {wanted} blocks.")
    if count and not 0 <= given_scales(weights).min() <= given_scales(weights).max() < math.inf:  # this is false for NaN too
        ensure(False, f"{weights} has scales for its blocks that are negative or no finite number.")


def follow_xnnpack(weights: Tensor) -> bool:
    """Return whether the product with these blockwise weights, which `ensure_blocks` has checked, is computed as in XNNPACK."""
    size = block_size(weights)
    if weights.type != TensorType.INT4 or size % _UNIT or weights.shape[-1] % size:
        return False
    scales = given_scales(weights)
    if scales.size and scales.min() >= 2.0**-14 and scales.max() < 2.0**16:  # halves have 13 bits less there
        return not np.bitwise_or.reduce(scales.view(np.uint32), axis=None) & 0x1FFF
    return bool(scales.size and scales.min() >= np.finfo(np.float32).tiny and (scales.astype(np.float16) == scales).all())


def block_scales(weights: Tensor, rounded: bool) -> Array:
    """Return the scales used in the computation, float32, shape (rows of weights, blocks); `rounded` to bfloat16 where they follow XNNPACK."""
    scales = np.ascontiguousarray(given_scales(weights), np.float32)
    return _as_bfloat16(scales) if rounded else scales


def _as_bfloat16(values: Array) -> Array:
    """Round finite float32 values to bfloat16 precision, ties to even."""
    bits = values.view(np.uint32)
    rounded: Array = ((bits + (((bits >> 16) & 1) + 0x7FFF)) & np.uint32(0xFFFF0000)).astype(np.uint32)
    return rounded.view(np.float32)


def from_blocks(values: Array, scales: Array, size: int) -> Array:
    """Dequantize blockwise: multiply integers by their block's scale; return float32 of the same shape.

    Args:
        values: the integers, a row per row of weights.
        scales: the scales, (rows, blocks of a row).
        size: the number of integers of a block.
    """
    depth = values.shape[-1]
    if depth % size:
        return np.asarray(values * scales.repeat(size, 1)[:, :depth].reshape(values.shape), np.float32)
    return np.asarray(values.reshape(-1, size) * scales.reshape(-1, 1), np.float32).reshape(values.shape)
