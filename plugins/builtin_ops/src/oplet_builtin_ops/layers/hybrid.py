"""Dynamic-range quantization of float inputs at run time, one scale per batch: the first step of every hybrid kernel.

The quantized values are stored as floats without their zero point, for an exact matrix product with the weights.

Numerics: tflite/kernels/internal/reference/portable_tensor_utils.cc, internal/optimized/neon_tensor_utils.cc
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import clip

__all__ = ["quantize_asymmetric", "quantize_symmetric", "quantize_to_even"]


# Arrays, since ufuncs would convert Python numbers at each call.
_MOST = np.array(127, np.float32)
_LOWEST = np.array(-127, np.float32)
_LEAST = np.array(-128, np.float32)
_ONE = np.array(1, np.float32)
_HALF = np.array(0.49999997, np.float32)
_MINUS_HALF = np.array(-0.49999997, np.float32)
_HUGE = np.array(2.0**60, np.float32)
_LARGEST = float(np.finfo(np.float32).max)

#: For no more rows, computing their scales and zero points one by one is faster than with numpy for all.
_FEW = 4
#: The most values for which a call of `copysign` takes less time than two vectorized ones.
_SHORT = 128


def quantize_symmetric(values: Array, target: Array, scales: Array, spare: Array) -> None:
    """Quantize each row symmetrically to -127 .. 127.

    Args:
        values: float32, (batches, values).
        target: receives the integers, float32 of the same shape.
        scales: receives the scale of each row, float32.
        spare: scratch, float32 of the same shape.
    """
    if len(values) <= _FEW and values.size:
        for row in range(len(values)):
            _quantize_row(values[row], target[row], scales[row, ...], spare[row])
        return
    np.absolute(values, target)
    largest = np.maximum.reduce(target, 1, initial=0)
    if not largest.all():
        largest[largest == 0] = 127
    np.multiply(values, _finite(np.divide(_MOST, largest))[:, None], target)
    _round(target, spare)
    clip(target, _LOWEST, _MOST, target)
    np.divide(largest, _MOST, scales)


def _quantize_row(values: Array, target: Array, scale: Array, spare: Array) -> None:
    """Quantize one row symmetrically. Quotients in double precision, rounded to float32, equal those of float32."""
    np.absolute(values, target)
    largest = target.item(target.argmax()) or 127.0
    # The bound keeps the reciprocal of a tiny scale finite; values never exceed 127 otherwise.
    scale[()] = min(127.0 / largest, _LARGEST)
    np.multiply(values, scale, target)
    _round(target, spare)
    scale[()] = largest / 127.0


def quantize_asymmetric(values: Array, target: Array, scales: Array, spare: Array) -> None:
    """Quantize each row to -128 .. 127 with a zero point of its own; `target` receives the integers minus the zero point.

    A value is rounded before the zero point is added, and the range is a difference in float32, as in the vector code of LiteRT's
    kernels; its scalar code rounds the sum.
    """
    if len(values) <= _FEW and values.size:
        for row in range(len(values)):
            _quantize_row_around(values[row], target[row], scales[row, ...], spare[row])
        return
    lowest, highest = np.minimum.reduce(values, 1, initial=0), np.maximum.reduce(values, 1, initial=0)
    zero_points = _scales_and_zero_points(lowest, highest, scales)
    np.multiply(values, _finite(np.divide(_ONE, scales))[:, None], target)
    _round(target, spare)
    clip(target, _LEAST - zero_points, _MOST - zero_points, target)


def _quantize_row_around(values: Array, target: Array, scale: Array, spare: Array) -> None:
    """Quantize one row around its zero point as `quantize_asymmetric` does."""
    low, high = min(values.item(values.argmin()), 0.0), max(values.item(values.argmax()), 0.0)
    if not high - low < _LARGEST:
        scale[()] = math.nan
        target.fill(math.nan)
        return
    # A difference of doubles, rounded to float32, equals that of float32.
    scale[()] = high - low
    step, zero_point = _scale_and_zero_point(low, high, scale.item())
    scale[()] = step
    step = scale.item()
    scale[()] = min(1.0 / step, _LARGEST) if step else _LARGEST
    np.multiply(values, scale, target)
    _round(target, spare)
    lowest, highest = _bounds(zero_point)
    clip(target, lowest, highest, target)
    scale[()] = step


@lru_cache(maxsize=256)
def _bounds(zero_point: float) -> tuple[Array, Array]:
    """Return -128 and 127 minus the zero point, as float32 scalars."""
    return np.array(-128 - zero_point, np.float32), np.array(127 - zero_point, np.float32)


def _scale_and_zero_point(low: float, high: float, range: float) -> tuple[float, float]:
    if low == high:
        return 1.0, 0.0
    step = range / 255.0
    from_low, from_high = low / step, high / step
    zero_point = -128 - from_low if 128 + abs(from_low) < 127 + abs(from_high) else 127 - from_high
    return step, float(min(max(math.trunc(zero_point + math.copysign(0.5, zero_point)), -128), 127))


def _scales_and_zero_points(low: Array, high: Array, scales: Array) -> Array:
    """Compute scale and zero point of many rows from their minimum and maximum; write `scales`, return zero points as a column."""
    zero = low == high
    step = np.where(zero, 1.0, (high - low).astype(np.float64) / 255.0)
    from_low, from_high = low / step, high / step
    zero_point = np.where(128 + np.abs(from_low) < 127 + np.abs(from_high), -128 - from_low, 127 - from_high)
    zero_point = np.clip(np.trunc(zero_point + np.copysign(0.5, zero_point)), -128, 127)
    scales[...] = step
    column: Array = np.where(zero, 0.0, zero_point).astype(np.float32)[:, None]
    return column


def quantize_to_even(values: Array, target: Array, scales: Array, spare: Array) -> None:
    """Quantize each row as XNNPACK does, with a zero point of its own; `target` receives the integers minus the zero point.

    All is computed in float32, and halves are rounded to even.

    Numerics: xnn_f32_qd8_asymmetric_quantization_params and the f32-qs8-vcvt kernels of XNNPACK
    """
    if len(values) <= _FEW and values.size:
        for row in range(len(values)):
            _quantize_row_to_even(values[row], target[row], scales[row, ...])
        return
    lowest, highest = np.minimum.reduce(values, 1, initial=0), np.maximum.reduce(values, 1, initial=0)
    factors = np.full_like(lowest, 255)
    np.divide(factors, highest - lowest, factors, where=lowest != highest)
    factors[lowest == highest] = 1
    _finite(factors)
    lowest *= factors
    highest *= factors
    zero_points = np.where((lowest + _LEAST) + (highest + _MOST) > 0, _LEAST - lowest, _MOST - highest)
    zero_points = np.rint(clip(zero_points, _LEAST, _MOST, zero_points))[:, None]
    np.divide(_ONE, factors, scales)
    np.multiply(values, factors[:, None], target)
    np.rint(target, target)
    clip(target, _LEAST - zero_points, _MOST - zero_points, target)


def _quantize_row_to_even(values: Array, target: Array, scale: Array) -> None:
    """Quantize one row as `quantize_to_even` does."""
    low, high = min(values.item(values.argmin()), 0.0), max(values.item(values.argmax()), 0.0)
    if not high - low < _LARGEST:
        scale[()] = math.nan
        target.fill(math.nan)
        return
    # Each result of doubles, rounded to float32, equals that of float32.
    factor = 1.0 if low == high else min(_single(255.0 / _single(high - low, scale), scale), _LARGEST)
    bottom, top = _single(low * factor, scale), _single(high * factor, scale)
    from_low = _single(bottom - 128, scale) + _single(top + 127, scale) > 0
    zero_point = round(min(max(_single(-128 - bottom if from_low else 127 - top, scale), -128.0), 127.0))
    scale[()] = factor
    np.multiply(values, scale, target)
    np.rint(target, target)
    lowest, highest = _bounds(float(zero_point))
    clip(target, lowest, highest, target)
    scale[()] = 1.0 / factor


def _single(value: float, place: Array) -> float:
    """Round a double to float32; `place` is a scratch scalar of that type."""
    place[()] = value
    rounded: float = place.item()
    return rounded


def _finite(factors: Array) -> Array:
    """Replace infinite factors by the largest float, in place: they stem from rows of tiny values."""
    np.minimum(factors, _LARGEST, out=factors)
    return factors


def _round(values: Array, spare: Array) -> None:
    """Round in place, halves away from zero."""
    if values.size <= _SHORT:
        np.copysign(_HALF, values, spare)  # which takes long for many values
    else:
        np.multiply(values, _HUGE, spare)
        clip(spare, _MINUS_HALF, _HALF, spare)
    np.add(values, spare, values)
    np.trunc(values, values)
