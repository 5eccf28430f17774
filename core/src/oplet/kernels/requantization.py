"""Requantization: from integer accumulators to quantized outputs, as each of LiteRT's roundings defines it.

A quantized matrix product ends in `clamp(zero_point + scale(accumulator + offset))`. LiteRT scales with 32-bit fixed-point arithmetic and
two roundings (`oplet.kernels.fixed_point`), and some kernels in another way (`Rounding`). With u = x * multiplier * 2**(shift - 31),
e = -shift and d = 2**-(e + 1), or 0 if there is no right shift, the two roundings together are

    floor(u + 1/2 + d)  where u >= 0        floor(u + 1/2 - d)  where u < 0

because the first rounding moves each threshold of the second by half of its unit. All these numbers are multiples of 2**(shift - 31), so
float64 holds them exactly while accumulators are small; of large ones it holds those exactly that are not clamped, unless the shift is far
to the right. `Requantization` is the definition, in int64, and tells where float64 gives the same and with which numbers; a fast kernel
computes with these.

Source: tflite/kernels/internal/quantization_util.cc, tflite/kernels/internal/common.cc and the kernels that use them
"""

from __future__ import annotations

import math
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import (
    int32_of,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_int64,
    multiply_rounding_up,
    quantize_multipliers,
)
from oplet.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Requantization", "Rounding"]


class Rounding(Enum):
    """Which of LiteRT's roundings turns an accumulator into a quantized output."""

    DOUBLE = "double"  #: 32-bit fixed point, two roundings
    UP = "up"  #: the same, the second rounding halves up, for channels in groups of eight, as LiteRT's vector code has it
    WIDE = "wide"  #: the form for int64 accumulators: a 16-bit multiplier, one rounding (halves up)
    FLOAT = "float"  #: a float64 product, rounded once (halves away from zero)


#: Those of 32-bit fixed point.
_NARROW: Final = (Rounding.DOUBLE, Rounding.UP)
#: Channels that LiteRT's vector code takes at a time.
_GROUP: Final = 8


class Requantization(Record):
    """Parameters that turn a layer's integer accumulators into its quantized outputs.

    Attributes:
        scales: the real factor of each channel, input scale * weight scale / output scale: float64, (channels,).
        offsets: what is added to each channel's accumulator first (bias, zero-point corrections): int64, (channels,).
        limit: an upper bound on |accumulator| + |offset|: one for all channels, or one per channel.
        zero_point: of the output.
        low: the smallest output, after the fused activation.
        high: the largest.
        rounding: which of LiteRT's roundings applies.

    Examples:
        >>> layer = Requantization(np.array([0.5, 0.25]), np.array([3, 0]), 2.0**24, -1, -128, 127)
        >>> layer.fits(np.dtype(np.int8))
        True
        >>> outputs = np.empty((2, 2), np.int8)
        >>> layer.requantize(np.array([[4, 4], [-1000, 6]]), outputs)
        >>> outputs.tolist()
        [[3, 0], [-128, 1]]
    """

    scales: Array
    offsets: Array
    limit: float | Array
    zero_point: int
    low: int
    high: int
    rounding: Rounding = Rounding.DOUBLE

    @cached_property
    def _fitting(self) -> dict[str, NDArray[np.bool_]]:
        return {}

    def requantize(self, accumulators: Array, output: Array) -> None:
        """Requantize in 64-bit integers, the exact definition: it holds for all accumulators, and wraps around where C++ does on
        x86.

        Args:
            accumulators: whole numbers of any type, (rows, channels).
            output: of the quantized type and the same shape; receives the outputs.
        """
        multipliers, shifts = quantize_multipliers(self.scales)
        total = accumulators.astype(np.int64) + self.offsets
        zero_point = np.int32(self.zero_point)
        if self.rounding in _NARROW:
            # An int32 accumulator wraps around.
            narrow = total.astype(np.int32)
            scaled = multiply_by_quantized_multiplier(narrow, multipliers, shifts)
            if self.rounding is Rounding.UP:
                scaled = np.where(self.is_up, multiply_rounding_up(narrow, multipliers, shifts), scaled)
        elif self.rounding is Rounding.WIDE:
            scaled = multiply_by_quantized_multiplier_int64(total, multipliers, shifts)
        else:
            with np.errstate(all="ignore"):
                product = total * np.asarray(self.scales, np.float64)
                scaled = int32_of(product + np.copysign(math.nextafter(0.5, 0), product))
        # The sum wraps around, too.
        np.copyto(output, np.clip(scaled + zero_point, self.low, self.high), casting="unsafe")

    def fits(self, dtype: np.dtype[Any]) -> bool:
        """Return whether computing in float64 gives exactly the results of `requantize`, for outputs of an integer type."""
        fitting = self.fitting(dtype)
        return bool(len(fitting) and fitting.all())

    def fitting(self, dtype: np.dtype[Any]) -> NDArray[np.bool_]:
        """Return the mask of the channels for which computing in float64 gives exactly the results of `requantize`."""
        if dtype.char not in self._fitting:  # asked for every block
            self._fitting[dtype.char] = self._compute_fitting(dtype)
        return self._fitting[dtype.char]

    def _compute_fitting(self, dtype: np.dtype[Any]) -> NDArray[np.bool_]:
        if self.rounding is Rounding.FLOAT:
            # A number just below a half must not be carried over it.
            factors = np.where((self.factors > 2.0**-1000) & (self.factors < 2.0**1000), self.factors, 1.0)
            carried = np.rint(0.5 / factors) * factors == math.nextafter(0.5, 0)
            return np.asarray(self.is_tame & (self.limits < 2.0**53) & ~carried)
        # Small numbers are exact as such. Of large ones, those that are not clamped are.
        _, shifts = self.multipliers
        small = (self.limits < 2.0 ** (52 - self.unit_bits)) & (shifts >= self.unit_bits - 52)
        fine = (self.limits < 2.0**52) & (8 * dtype.itemsize + 2 + self.unit_bits - shifts <= 53)
        return np.asarray(self.is_tame & (small | fine))

    @cached_property
    def limits(self) -> Array:
        """Upper bound on |accumulator| + |offset| of each channel: float64."""
        return np.asarray(np.broadcast_to(np.asarray(self.limit, np.float64), np.shape(self.scales)))

    @cached_property
    def is_tame(self) -> NDArray[np.bool_]:
        """Mask of the channels in which nothing wraps around or is cut off before the clamp, so that larger accumulators give
        outputs that are as large or larger.
        """
        if self.rounding is Rounding.FLOAT:
            with np.errstate(all="ignore"):  # factors may be infinite
                return np.asarray((self.factors >= 0) & (self.limits * self.factors < 2.0**30))
        multipliers, shifts = self.multipliers
        # The left shift, or the accumulator itself, might wrap around; and of wide ones what is cut to 32 bits.
        left = shifts if self.rounding is Rounding.WIDE else np.maximum(shifts, 0)
        return np.asarray((multipliers == 0) | ((multipliers > 0) & (np.ldexp(self.limits, left) < 2.0**31)))

    def constants(self) -> tuple[NDArray[np.bool_], Array]:
        """Return the mask of the channels that have the same output whatever their accumulators, and these outputs, int64.

        They are filters of zeros, and those that are scaled to less than a step of the output or are always clamped.
        """
        reach = np.maximum(self.limits - np.abs(self.offsets), 0)
        ends = np.empty((2, len(reach)), np.int64)
        self.requantize(np.stack([-reach, reach]), ends)
        # Wide accumulators are defined up to 47 bits.
        return (reach == 0) | (self.is_tame & (self.limits < 2.0**46) & (ends[0] == ends[1])), ends[0]

    @cached_property
    def multipliers(self) -> tuple[Array, Array]:
        """Fixed-point form of the scales: (multipliers, shifts) for each channel; multipliers have 16 bits for 64-bit
        accumulators.
        """
        multipliers, shifts = quantize_multipliers(self.scales)
        if self.rounding is not Rounding.WIDE:
            return multipliers, shifts
        wide = multipliers.astype(np.int64)
        return np.asarray(np.where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, 0x7FFF)), shifts

    @cached_property
    def factors(self) -> Array:
        """Factor of each channel's accumulators as float64: from multiplier and shift, or the scale itself."""
        if self.rounding is Rounding.FLOAT:
            return np.asarray(self.scales, np.float64)
        multipliers, shifts = self.multipliers
        return np.asarray(np.ldexp(multipliers.astype(np.float64), shifts - self.unit_bits))

    @cached_property
    def nudges(self) -> Array:
        """The term d, per channel, that the first of two roundings adds to a scaled value above zero and subtracts from one
        below; float64.
        """
        _, shifts = self.multipliers
        if self.rounding not in _NARROW:
            return np.zeros(len(shifts))
        return np.asarray(np.where(shifts < 0, np.ldexp(0.5, shifts), 0.0))

    @cached_property
    def lifts(self) -> Array:
        """The term of `nudges` for channels whose rounding adds it below zero as well, 0 for other channels; float64."""
        return np.asarray(np.where(self.is_up, self.nudges, 0.0))

    @property
    def unit_bits(self) -> int:
        """Bits of a multiplier: products are multiples of 2**(shift - unit_bits)."""
        return 15 if self.rounding is Rounding.WIDE else 31

    @cached_property
    def is_small(self) -> bool:
        """Whether products of accumulators and multipliers stay below 2**52, so that float64 holds them exactly."""
        return bool(self.limits.max(initial=0) < 2.0 ** (52 - self.unit_bits))

    @cached_property
    def is_one_sided(self) -> bool:
        """Whether everything below zero is clamped, so that the rounding of negative numbers does not matter."""
        return self.low >= self.zero_point and self.rounding is not Rounding.FLOAT

    def is_fine(self, dtype: np.dtype[Any]) -> bool:
        """Return whether float64 holds multiples of 2**(shift - unit_bits) exactly up to four times `dtype`'s range."""
        return bool(8 * dtype.itemsize + 2 + self.unit_bits - self._smallest_shift <= 53)

    @cached_property
    def _smallest_shift(self) -> int:
        return int(self.multipliers[1].min())

    @property
    def is_up(self) -> NDArray[np.bool_]:
        """Mask of the channels whose results are rounded with halves up, as in LiteRT's vector code."""
        channels = len(self.multipliers[1])
        return np.asarray(np.arange(channels) < (channels // _GROUP * _GROUP if self.rounding is Rounding.UP else 0))
