"""int16 LOGISTIC and TANH: interpolation between 256 samples of the logistic function, which both use.

Numerics: tflite/kernels/internal/reference/integer_ops/logistic.h, tanh.h and internal/common.h (the table).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from oplet import Tensor, ensure
from oplet.kernels.fixed_point import int32_of
from oplet.records import Row
from oplet_builtin_ops.arithmetic.scaling import power_of_two_exponent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32s = NDArray[np.int32]
    Int64s = NDArray[np.int64]

__all__ = ["InputScaling", "input_scaling", "logistic_int16", "tanh_int16"]


class InputScaling(Row):
    """The fixed-point factor that rescales an int16 input to steps of 1 / (3 * 2**12): input * `multiplier` >> `shift`, rounded."""

    multiplier: int
    shift: int


@functools.cache
def _samples() -> tuple[Int32s, Int32s]:
    """Return logistic(i / 24) for i from 0 to 255 in steps of 1/65536, lowered by half of the error of interpolation after it, and the
    difference of each from the next.
    """

    def logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(65536 / (1 + np.exp(-x / 24)))

    at = np.arange(256.0)
    error = (logistic(at) + logistic(at + 1)) / 2 - logistic(at + 0.5)
    samples = np.floor(logistic(at) - error / 2 + 0.5).astype(np.int32)
    samples[-1] = 65535  # the limit for large values
    return samples, np.diff(samples, append=samples[-1:])


def input_scaling(source: Tensor, output: Tensor, shifts: tuple[int, ...]) -> InputScaling:
    """Return the rescaling of an input: times 3 * 2**e for a scale 2**(e - 12) with e in `shifts`; for others with a right shift.

    Raises:
        EnsureError: the output's scale is not 2**-15.
    """
    ensure(power_of_two_exponent(output.scale) == -15, f"{output} has scale {output.scale:g}; it must be 1/32768.")
    exponent = power_of_two_exponent(source.scale)
    if exponent is not None and exponent + 12 in shifts:
        return InputScaling(3 << (exponent + 12), 0)
    multiplier, shift = source.scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        shift += 1
        multiplier *= 2.0
    whole = int(int32_of(multiplier))
    # LiteRT uses a multiplier of 0 to mark a power of two.
    return InputScaling(whole, shift) if whole else InputScaling(int(np.int64(3 << shift).astype(np.int32)), 0)


def _interpolated(values: Int64s, scaling: InputScaling, bits: int) -> tuple[Int32s, Int32s]:
    """Interpolate the logistic function of the magnitudes of inputs; return it, and the inputs, limited to those of the samples.

    Args:
        values: int16 inputs.
        scaling: rescales them.
        bits: decides the steps of the rescaled input, 2**bits from one sample to the next, and those of the result, 2**-(16 + bits).
    """
    scaled = (values * scaling.multiplier + ((1 << scaling.shift) >> 1)).astype(np.int32) >> scaling.shift
    x = np.minimum(np.maximum(scaled, -255 << bits), 255 << bits)
    magnitude = np.abs(x)
    index = magnitude >> bits
    samples, steps = _samples()
    return (samples.take(index) << bits) + (magnitude & (1 << bits) - 1) * steps.take(index), x


def logistic_int16(values: Int64s, scaling: InputScaling) -> Int32s:
    """Compute LOGISTIC of int16 values by table interpolation; the result is int16 with scale 1/32768."""
    line, x = _interpolated(values, scaling, 9)
    result = np.minimum(line, 0x7FFF << 10)  # the limit for large values here
    return np.where(x >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh_int16(values: Int64s, scaling: InputScaling) -> Int32s:
    """Compute TANH of int16 values as 2 * logistic(2x) - 1 by table interpolation; the result is int16 with scale 1/32768."""
    line, x = _interpolated(values, scaling, 8)
    return np.where(x >= 0, line - (1 << 23) + (1 << 7), -line + (1 << 23) + (1 << 7) - 1) >> 8
