"""SOFTMAX and LOG_SOFTMAX of quantized values in integers, by a table of exp(-distance from the row's maximum).

Numerics: tflite/kernels/internal/reference/softmax.h, integer_ops/log_softmax.h, internal/quantization_util.cc (PreprocessSoftmaxScaling)
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet import Tensor
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip, multiply_by_quantized_multiplier, quantize_multiplier, rounding_divide_by_pot
from oplet_builtin_ops.arithmetic.fixed_point_functions import exp_on_negative_values, logarithm, reciprocal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["LogSoftmax8", "Softmax8", "Softmax16", "distance_scaling", "fits_fixed_point"]


#: Integer bits of a scaled distance, and of the sum of exponentials.
_DISTANCE_BITS: Final = 5
_SUM_BITS: Final = 12
_HALF: Final = np.array([1 << 30], np.int64)
#: Distances whose exponentials are computed at a time, so that their intermediate values stay in the cache.
_BLOCK: Final = 8192
_31: Final = np.array([31], np.int64)
#: Of LOG_SOFTMAX: steps of the output's scale, 1/16, in the fixed point of a distance from the largest value.
_LOG_STEP_BITS: Final = 31 - 5 - 4
#: In that fixed point, a distance of which no output is near enough to the largest; less some logarithm it is still an int32.
_LEAST_LOG: Final = -20 << 4 + _LOG_STEP_BITS
#: Sums have 12 integer bits. More than 4096, which takes as many values near the largest one, count as that; LiteRT's overflow.
_LARGEST_SUM: Final = np.int64((1 << 31) - 1)


def fits_fixed_point(source: Tensor, beta: float) -> bool:
    """Return whether the 8-bit input's scale is large enough for `distance_scaling`: the rescaling factor must be above 1."""
    return beta * source.scale * (1 << (31 - _DISTANCE_BITS)) > 1


def distance_scaling(source: Tensor, beta: float) -> tuple[int, int, int]:
    """Return (multiplier, shift, largest distance) to rescale 8-bit distances from a row's maximum in a fixed-point softmax.

    Multiplier and shift rescale to steps of 2**-26 (5 integer bits); beyond the largest distance the exponential counts as 0.
    """
    real = min(beta * source.scale * (1 << (31 - _DISTANCE_BITS)), 2.0**31 - 1)
    multiplier, shift = quantize_multiplier(real)
    return multiplier, shift, math.floor(31 * (1 << (31 - _DISTANCE_BITS)) / (1 << shift))


class Softmax8:
    """SOFTMAX of 8-bit input; the output is 8-bit or int16 with a scale that spans its whole type.

    Attributes:
        exponentials: exp(-d) in steps of 2**-31 for the distances d from 0 to 255; 0 beyond the largest distance.
        summands: the same in steps of 2**-19, as the sum is, which has 12 integer bits.
    """

    def __init__(self, source: Tensor, beta: float) -> None:
        multiplier, shift, farthest = distance_scaling(source, beta)
        distances = np.arange(256)
        reached = distances <= farthest
        scaled = multiply_by_quantized_multiplier(-np.where(reached, distances, 0).astype(np.int32), multiplier, shift)
        exponentials = np.where(reached, exp_on_negative_values(scaled, _DISTANCE_BITS), 0)
        self.exponentials = exponentials.astype(np.int64)
        self.summands = rounding_divide_by_pot(self.exponentials, _SUM_BITS)

    def bind(self, x: Array, y: Array, largest: Array, distances: Array, wide: Int64s, scratch: Int64s) -> Thunk:
        """Return a function that computes y = SOFTMAX(x); `largest` has one element per row, the other arrays are scratch of x's
        shape.
        """
        from oplet_builtin_ops.shaping.row_folds import fold_rows  # here, as compiled kernels serve most

        bits = 8 * y.itemsize
        limits = np.iinfo(y.dtype)
        lowest, highest = np.array(limits.min, np.int64), np.array(limits.max, np.int64)
        octets, top = x.view(np.uint8), largest.view(np.uint8)
        exponentials, summands = self.exponentials, self.summands
        totals = np.empty(largest.shape, np.int64)
        find_largest, add_up = fold_rows(np.maximum, x, largest), fold_rows(np.add, wide, totals)

        def run() -> None:
            find_largest()
            # The difference of the bits is that of the values, whether they are signed or not.
            np.subtract(top, octets, distances)
            # `take` copies indices of any type but int64.
            np.copyto(scratch, distances)
            summands.take(scratch, None, wide, "clip")
            add_up()
            factor, bits_over_unit = reciprocal(totals, _SUM_BITS)
            exponent = bits_over_unit + (31 - bits)
            exponentials.take(scratch, None, wide, "clip")
            np.multiply(wide, factor, wide)
            np.add(wide, _HALF, wide)
            np.right_shift(wide, _31, wide)
            np.add(wide, (np.int64(1) << exponent) >> 1, wide)
            np.right_shift(wide, exponent, wide)
            np.add(wide, lowest, wide)
            np.minimum(wide, highest, out=wide)
            y[...] = wide

        return run


class LogSoftmax8:
    """LOG_SOFTMAX of 8-bit input; the output has the same type and scale 1/16, and its largest value means 0.

    Attributes:
        summands: exp(-d) in steps of 2**-19 for the distances d from 0 to 255 from a row's largest value.
        distances: -d, rescaled to steps of 2**-26; at least `_LEAST_LOG`, which is below all outputs.
    """

    def __init__(self, source: Tensor) -> None:
        self.summands = Softmax8(source, 1.0).summands.astype(np.int32)
        multiplier, shift, farthest = distance_scaling(source, 1.0)
        distances = np.arange(256, dtype=np.int32)
        scaled = multiply_by_quantized_multiplier(-distances, multiplier, shift)
        self.distances = np.maximum(np.where(distances <= farthest, scaled, _LEAST_LOG), _LEAST_LOG).astype(np.int32)

    def bind(self, x: Array, y: Array, largest: Array, below: Array, steps: Array, places: Array) -> Thunk:
        """Return a function that computes y = LOG_SOFTMAX(x); `largest` has one element per row, the others are scratch of x's
        shape.
        """
        from oplet_builtin_ops.shaping.row_folds import fold_rows  # here, as compiled kernels serve most

        octets, top = x.view(np.uint8), largest.view(np.uint8)
        info = np.iinfo(y.dtype)
        lowest, highest, bits = (np.array(value, np.int32) for value in (info.min, info.max, _LOG_STEP_BITS))
        half = (1 << _LOG_STEP_BITS - 1) - 1
        totals = np.empty(largest.shape, np.int64)
        find_largest, add_up = fold_rows(np.maximum, x, largest), fold_rows(np.add, steps, totals)

        def run() -> None:
            find_largest()
            # The difference of the bit patterns is that of the values, signed or not.
            np.subtract(top, octets, below)
            # `take` would copy indices of any other type than int64.
            np.copyto(places, below)
            self.summands.take(places, None, steps, "clip")
            add_up()
            np.minimum(totals, _LARGEST_SUM, out=totals)
            logarithms = logarithm(totals)
            self.distances.take(places, None, steps, "clip")
            # Never above zero, so that this rounds halves away from it.
            np.subtract(steps, (logarithms - half).astype(np.int32), steps)
            np.right_shift(steps, bits, steps)
            np.add(steps, highest, steps)
            np.maximum(steps, lowest, out=steps)
            y[...] = steps

        return run


@functools.cache
def _exponentials() -> NDArray[np.int16]:
    """Return the look-up table of exp on [-10, 0], in steps of 2**-15."""
    from oplet_builtin_ops.arithmetic.lookup import interpolated, interpolation_table

    return interpolated(interpolation_table(np.exp, 10.0 / 65535, 32767, 2.0 / 65535, 0, np.float64))


@functools.cache
def _reciprocals() -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Return 513 samples of 1 / (1 + x) on [0, 1], in steps of 2**-15, and the look-up table that interpolates them."""
    from oplet_builtin_ops.arithmetic.lookup import interpolated, interpolation_table

    samples = interpolation_table(lambda x: 1 / (1 + x), 1.0 / 65535, -32768, 2.0 / 65535, 0, np.float64)
    return samples, interpolated(samples)


class Softmax16:
    """SOFTMAX of int16 input and output, by interpolation tables of exp and of the reciprocal.

    Attributes:
        exponentials: exp(-d) in steps of 2**-15 for the distances d from 0 to 65535.
        reciprocals: the samples of 1 / (1 + x) on [0, 1] that are interpolated, in steps of 2**-15.
    """

    def __init__(self, source: Tensor, beta: float) -> None:
        with np.errstate(all="ignore"):
            scale = float(np.float32(source.scale) * np.float32(beta))
        multiplier, shift = quantize_multiplier(scale / (10.0 / 65535.0))
        self.exponentials = np.empty(65536, np.int64)
        for start in range(0, 65536, _BLOCK):
            distances = np.arange(-start, -start - _BLOCK, -1, dtype=np.int32)
            places = clip(multiply_by_quantized_multiplier(distances, multiplier, shift), -65535, 0) + 32767
            self.exponentials[start : start + _BLOCK] = _exponentials()[places.astype(np.uint16)]
        self.reciprocals, _ = _reciprocals()

    def bind(self, x: Array, y: Array, largest: Array, distances: Array, wide: Int64s, scratch: Int64s) -> Thunk:
        """Return a function that computes y = SOFTMAX(x); `largest` has one element per row, the other arrays are scratch of x's
        shape.
        """
        from oplet_builtin_ops.shaping.row_folds import fold_rows  # here, as compiled kernels serve most

        words, top = x.view(np.uint16), largest.view(np.uint16)
        exponentials = self.exponentials
        lowest, highest = np.array(0, np.int64), np.array(32767, np.int64)
        totals = np.empty(largest.shape, np.int64)
        find_largest, add_up = fold_rows(np.maximum, x, largest), fold_rows(np.add, wide, totals)

        def run() -> None:
            find_largest()
            np.subtract(top, words, distances)
            np.copyto(scratch, distances)
            exponentials.take(scratch, None, wide, "clip")
            add_up()
            factor, shift = _reciprocal_int16(totals)
            np.multiply(wide, factor, wide)
            np.add(wide, (np.int64(1) << shift) >> 1, wide)
            np.right_shift(wide, shift, wide)
            clip(wide, lowest, highest, wide)
            y[...] = wide

        return run


def _reciprocal_int16(total: Int64s) -> tuple[Int64s, Any]:
    """Compute 1 / total of sums in steps of 2**-15; return (factor, right shift) by which exponentials become outputs."""
    headroom = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    shifted = ((total << np.maximum(headroom - 1, 0)) + (1 << 13)) >> 14
    places = np.clip(shifted - ((1 << 15) + (1 << 16)), -32768, 32767)
    return _reciprocals()[1][places.astype(np.uint16)].astype(np.int64), 31 - headroom
