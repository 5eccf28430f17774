"""From integer accumulators to quantized outputs in a few float64 passes, bit for bit as the fixed-point definition.

A quantized matrix product ends in `clamp(zero_point + scale(accumulator + bias))`. LiteRT scales with 32-bit fixed-point
arithmetic and two roundings (fixed_point.py). With u = x * multiplier * 2**(shift - 31), e = -shift and d = 2**-(e + 1), or 0 if
there is no right shift, the two roundings together are

    floor(u + 1/2 + d)  where u >= 0        floor(u + 1/2 - d)  where u < 0

because the first rounding moves each threshold of the second by half of its unit. All these numbers are multiples of
2**(shift - 31), so float64 holds those exactly that the output's range does not clamp away, unless the shift is far to the
right. `Requantizer` takes the fast way where that is so for every channel, and int64 arithmetic otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet_builtin_ops.fixed_point import (
    clip,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_int64,
    quantize_multipliers,
)
from oplet_builtin_ops.program import Call, convert, repeated, repeats

__all__ = ["Call", "Requantizer", "Rounding", "repeated", "repeats"]

Array = NDArray[Any]


class Rounding(Enum):
    """Which of LiteRT's scalings turns an accumulator into steps of the output."""

    DOUBLE = "double"  #: 32-bit fixed point, two roundings
    WIDE = "wide"  #: the form for int64 accumulators: a 16-bit multiplier, one rounding (halves up)
    FLOAT = "float"  #: a float64 product, rounded once (halves away from zero)


@dataclass(frozen=True)
class Requantizer:
    """Scales accumulators of one layer.

    Attributes:
        scales: the real factor of each channel, input scale * weight scale / output scale.
        offsets: what is added to each channel's accumulator first (bias, zero-point corrections), int64.
        limit: an upper bound on |accumulator + offset|.
        zero_point: of the output.
        low: the smallest output, after the fused activation.
        high: the largest.
        rounding: which definition.
    """

    scales: Array
    offsets: Array
    limit: float
    zero_point: int
    low: int
    high: int
    rounding: Rounding = Rounding.DOUBLE
    _joined: dict[int, tuple[Array, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def calls(self, accumulators: Array, output: Array, scratch: Array, spare: Array) -> list[Call]:
        """The numpy calls that turn one block of accumulators into outputs.

        Args:
            accumulators: floats with integer values, (rows, channels), contiguous.
            output: the same shape, of the quantized type, contiguous.
            scratch: float64, at least as many values.
            spare: another such.
        """
        if not output.size:
            return []
        if not self.fits(output.dtype.itemsize * 8):
            return [(self._exactly, (accumulators, output))]
        rows, channels = output.shape
        joined = repeats(rows, channels)
        shape = (rows // joined, channels * joined)
        u = scratch[: output.size].reshape(shape)
        spare = spare[: output.size].reshape(shape)
        if joined not in self._joined:
            self._joined[joined] = tuple(repeated(v, joined) for v in self._constants())
        factor, nudge, offset = self._joined[joined]
        unsigned = output.view(f"u{output.dtype.itemsize}").reshape(shape)
        lowest = 0 if output.dtype.kind == "u" else -(1 << (8 * output.dtype.itemsize - 1))
        shift = self.zero_point - lowest
        bounds = np.float64(self.low - lowest), np.float64(self.high - lowest)
        program: list[Call] = []
        if self.rounding is Rounding.FLOAT:
            # The product must be rounded as a whole, so the offset comes first.
            program += [
                (np.add, (accumulators.reshape(shape), offset, u)),
                (np.multiply, (u, factor, u)),
                (np.multiply, (u, np.float64(2.0**70), spare)),
                (clip, (spare, np.float64(-0.49999999999999994), np.float64(0.49999999999999994), spare)),
                (np.add, (u, spare, u)),
                (np.trunc, (u, u)),
                (np.add, (u, np.float64(shift), u)),
            ]
        else:
            program.append((np.multiply, (accumulators.reshape(shape), factor, u)))
            if self.low >= self.zero_point or not nudge.any():
                # Below zero everything is clamped, or both signs round alike.
                program.append((np.add, (u, offset + (nudge + (0.5 + shift)), u)))
            else:
                program += [
                    (np.add, (u, offset, u)),
                    (np.multiply, (u, np.float64(2.0**70), spare)),
                    (clip, (spare, np.float64(-1), np.float64(1), spare)),
                    (np.multiply, (spare, nudge, spare)),
                    (np.add, (u, spare, u)),
                    (np.add, (u, np.float64(0.5 + shift), u)),
                ]
        program += [(clip, (u, *bounds, u)), (convert, (unsigned, u))]
        if lowest:
            program.append((np.bitwise_xor, (unsigned, unsigned.dtype.type(-lowest), unsigned)))
        return program

    def fits(self, bits: int) -> bool:
        """Whether float64 gives exactly what fixed point gives, for an output of so many bits."""
        if self.rounding is Rounding.FLOAT:
            return self.limit < 2.0**53
        multipliers, shifts = quantize_multipliers(self.scales)
        if not len(shifts) or (multipliers < 0).any():
            return False
        unit_bits = (31 if self.rounding is Rounding.DOUBLE else 15) - shifts
        # What is not clamped is below 2**(bits + 2) with the offset that makes it positive; a left shift must not wrap around.
        return bool(
            self.limit < 2.0**52
            and (bits + 2 + unit_bits.max() <= 53)
            and (self.rounding is Rounding.WIDE or self.limit * 2.0 ** max(0, int(shifts.max())) < 2.0**31)
        )

    def _constants(self) -> tuple[Array, Array, Array]:
        """Per channel: the exact factor, the threshold's nudge d, and the scaled offset."""
        if self.rounding is Rounding.FLOAT:
            return np.asarray(self.scales, np.float64), np.zeros(len(self.scales)), self.offsets.astype(np.float64)
        multipliers, shifts = quantize_multipliers(self.scales)
        if self.rounding is Rounding.WIDE:
            factor = np.ldexp(_reduced(multipliers), shifts - 15)
            return factor, np.zeros(len(factor)), self.offsets * factor
        factor = np.ldexp(multipliers.astype(np.float64), shifts - 31)
        return factor, np.where(shifts < 0, np.ldexp(0.5, shifts), 0.0), self.offsets * factor

    def _exactly(self, accumulators: Array, output: Array) -> None:
        multipliers, shifts = quantize_multipliers(self.scales)
        total = accumulators.astype(np.int64) + self.offsets
        if self.rounding is Rounding.DOUBLE:
            # An int32 accumulator wraps around.
            scaled = multiply_by_quantized_multiplier(total.astype(np.int32), multipliers, shifts).astype(np.int64)
        elif self.rounding is Rounding.WIDE:
            scaled = multiply_by_quantized_multiplier_int64(total, multipliers, shifts).astype(np.int64)
        else:
            product = total * np.asarray(self.scales, np.float64)
            scaled = np.trunc(product + np.copysign(math.nextafter(0.5, 0), product)).astype(np.int64)
        np.copyto(output, np.clip(scaled + self.zero_point, self.low, self.high), casting="unsafe")


def _reduced(multipliers: Array) -> Array:
    wide = multipliers.astype(np.int64)
    return np.where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, 0x7FFF).astype(np.float64)
