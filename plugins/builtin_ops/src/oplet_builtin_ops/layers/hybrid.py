"""Float inputs quantized on the fly, one scale per batch: the first half of every hybrid kernel.

The quantized values are kept as floats without their zero point, ready for an exact matrix product with the weights.
Numerics: tflite/kernels/internal/reference/portable_tensor_utils.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet_builtin_ops.arithmetic.fixed_point import clip

__all__ = ["quantize_asymmetric", "quantize_symmetric"]

Array = NDArray[Any]

_HALF = np.float32(0.49999997)
_HUGE = np.float32(2.0**60)


def quantize_symmetric(values: Array, target: Array, scales: Array, spare: Array) -> None:
    """Quantize each row to -127 .. 127.

    Args:
        values: float32, (batches, values).
        target: receives the integers, float32 of the same shape.
        scales: receives the scale of each row, float32.
        spare: float32 of the same shape.
    """
    np.absolute(values, target)
    largest = target.max(axis=1, initial=0)
    zero = largest == 0
    inverse = np.divide(np.float32(127), largest, where=~zero, out=np.zeros_like(largest))
    np.multiply(values, inverse[:, None], target)
    _round(target, spare)
    clip(target, np.float32(-127), np.float32(127), target)
    np.divide(largest, np.float32(127), scales)
    scales[zero] = 1


def quantize_asymmetric(values: Array, target: Array, scales: Array, spare: Array) -> None:
    """Quantize each row to -128 .. 127 around its own zero point, which is subtracted again; arguments as above."""
    low = values.min(axis=1, initial=0).astype(np.float64)
    high = values.max(axis=1, initial=0).astype(np.float64)
    zero = low == high
    step = np.where(zero, 1.0, (high - low) / 255.0)
    from_low, from_high = low / step, high / step
    zero_point = np.where(128 + np.abs(from_low) < 127 + np.abs(from_high), -128 - from_low, 127 - from_high)
    zero_point = np.clip(np.trunc(zero_point + np.copysign(0.5, zero_point)), -128, 127)
    zero_point = np.where(zero, 0.0, zero_point).astype(np.float32)[:, None]
    scales[...] = step
    np.multiply(values, (np.float32(1) / scales)[:, None], target)
    np.add(target, zero_point, target)
    _round(target, spare)
    clip(target, np.float32(-128), np.float32(127), target)
    np.subtract(target, zero_point, target)


def _round(values: Array, spare: Array) -> None:
    """Round in place, halves away from zero."""
    np.multiply(values, _HUGE, spare)
    clip(spare, -_HALF, _HALF, spare)
    np.add(values, spare, values)
    np.trunc(values, values)
