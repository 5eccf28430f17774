"""Fused activations: their bounds for float and for quantized outputs. Numerics: tflite/kernels/kernel_util.cc"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Final

import numpy as np

from oplet.kernels.fixed_point import quantized_range
from oplet.schema.enums import ActivationFunctionType, TensorType

__all__ = ["CLAMPS", "activation_range", "float_activation_range"]

_ACTIVATIONS: Final = {
    ActivationFunctionType.RELU: (0.0, math.inf),
    ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
    ActivationFunctionType.RELU6: (0.0, 6.0),
}
#: The activations that are clamps; NONE is one without bounds.
CLAMPS: Final = (ActivationFunctionType.NONE, *_ACTIVATIONS)


@lru_cache(maxsize=1024)
def activation_range(activation: ActivationFunctionType, type: TensorType, scale: float, zero_point: int) -> tuple[int, int]:
    """Return the bounds (lowest, highest) of a fused activation on a quantized output: its own range, clipped to the type's.

    With a very small scale a bound lies beyond the type's range and is clipped, as XNNPACK does; where int32 cannot hold it, LiteRT's
    other kernels refuse the node or clamp to undefined values. With a scale of 0 the bound 0 is the zero point, and others are clipped.
    """
    lowest, highest = quantized_range(type)
    if activation not in _ACTIVATIONS:
        return lowest, highest

    def quantize(bound: float) -> int:
        # LiteRT divides in float32 and rounds halves away from zero.
        with np.errstate(all="ignore"):
            steps = float(np.float32(bound) / np.float32(scale)) if bound else 0.0
        steps = min(max(steps, -(2.0**31)), 2.0**31)
        return zero_point + int(math.copysign(math.floor(abs(steps) + 0.5), steps))

    low, high = _ACTIVATIONS[activation]
    return max(lowest, quantize(low)), highest if math.isinf(high) else min(highest, quantize(high))


@cache
def float_activation_range(activation: ActivationFunctionType) -> tuple[np.float32, np.float32]:
    """Return the bounds (lowest, highest) of a fused activation on floats, infinite where it has none. Only the activations in
    `CLAMPS` are clamps: TANH and SIGN_BIT are not.

    >>> low, high = float_activation_range(ActivationFunctionType.RELU)
    >>> float(low), float(high)
    (0.0, inf)
    """
    low, high = _ACTIVATIONS.get(activation, (-math.inf, math.inf))
    return np.float32(low), np.float32(high)
