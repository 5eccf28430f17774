"""Float inputs quantized on the fly, one scale per batch: the first half of every hybrid kernel.

The quantized values are kept as floats without their zero point, ready for an exact matrix product with the weights.
Numerics: tflite/kernels/internal/reference/portable_tensor_utils.cc
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet_builtin_ops.arithmetic.fixed_point import clip

__all__ = ["quantize_asymmetric", "quantize_symmetric"]

Array = NDArray[Any]

# Arrays: numbers would be turned into arrays at each call.
_MOST = np.array(127, np.float32)
_LOWEST = np.array(-127, np.float32)
_LEAST = np.array(-128, np.float32)
_ONE = np.array(1, np.float32)
_HALF = np.array(0.49999997, np.float32)
_MINUS_HALF = np.array(-0.49999997, np.float32)
_HUGE = np.array(2.0**60, np.float32)

#: So many rows get their scales and zero points one by one, in less time than numpy takes for all of them.
_FEW = 4


def quantize_symmetric(values: Array, target: Array, scales: Array, spare: Array) -> None:
    """Quantize each row to -127 .. 127.

    Args:
        values: float32, (batches, values).
        target: receives the integers, float32 of the same shape.
        scales: receives the scale of each row, float32.
        spare: float32 of the same shape.
    """
    np.absolute(values, target)
    largest = np.maximum.reduce(target, 1, initial=0)
    if not largest.all():
        largest[largest == 0] = 127
    np.multiply(values, np.divide(_MOST, largest)[:, None], target)
    _round(target, spare)
    clip(target, _LOWEST, _MOST, target)
    np.divide(largest, _MOST, scales)


def quantize_asymmetric(values: Array, target: Array, scales: Array, spare: Array) -> None:
    """Quantize each row to -128 .. 127 around its own zero point, which is subtracted again; arguments as above."""
    lowest, highest = np.minimum.reduce(values, 1, initial=0), np.maximum.reduce(values, 1, initial=0)
    zero_points: Array
    if 0 < len(values) <= _FEW and np.isfinite(lowest).all() and np.isfinite(highest).all():
        found = [_scale_and_zero_point(low, high) for low, high in zip(lowest.tolist(), highest.tolist())]
        scales[...] = [scale for scale, _ in found]
        zero_points = np.array([[zero_point] for _, zero_point in found], np.float32)
    else:
        zero_points = _scales_and_zero_points(lowest.astype(np.float64), highest.astype(np.float64), scales)
    np.multiply(values, np.divide(_ONE, scales)[:, None], target)
    np.add(target, zero_points, target)
    _round(target, spare)
    clip(target, _LEAST, _MOST, target)
    np.subtract(target, zero_points, target)


def _scale_and_zero_point(low: float, high: float) -> tuple[float, float]:
    if low == high:
        return 1.0, 0.0
    step = (high - low) / 255.0
    from_low, from_high = low / step, high / step
    zero_point = -128 - from_low if 128 + abs(from_low) < 127 + abs(from_high) else 127 - from_high
    return step, float(min(max(math.trunc(zero_point + math.copysign(0.5, zero_point)), -128), 127))


def _scales_and_zero_points(low: Array, high: Array, scales: Array) -> Array:
    """The zero points of many rows, as a column; receives their scales."""
    zero = low == high
    step = np.where(zero, 1.0, (high - low) / 255.0)
    from_low, from_high = low / step, high / step
    zero_point = np.where(128 + np.abs(from_low) < 127 + np.abs(from_high), -128 - from_low, 127 - from_high)
    zero_point = np.clip(np.trunc(zero_point + np.copysign(0.5, zero_point)), -128, 127)
    scales[...] = step
    column: Array = np.where(zero, 0.0, zero_point).astype(np.float32)[:, None]
    return column


def _round(values: Array, spare: Array) -> None:
    """Round in place, halves away from zero."""
    np.multiply(values, _HUGE, spare)
    clip(spare, _MINUS_HALF, _HALF, spare)
    np.add(values, spare, values)
    np.trunc(values, values)
