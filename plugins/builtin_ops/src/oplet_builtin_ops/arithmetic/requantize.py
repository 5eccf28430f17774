"""From integer accumulators to quantized outputs in a few float64 passes, bit for bit as the fixed-point definition.

A quantized matrix product ends in `clamp(zero_point + scale(accumulator + bias))`. LiteRT scales with 32-bit fixed-point
arithmetic and two roundings (fixed_point.py). With u = x * multiplier * 2**(shift - 31), e = -shift and d = 2**-(e + 1), or 0 if
there is no right shift, the two roundings together are

    floor(u + 1/2 + d)  where u >= 0        floor(u + 1/2 - d)  where u < 0

because the first rounding moves each threshold of the second by half of its unit. All these numbers are multiples of
2**(shift - 31), so float64 holds them exactly while accumulators are small; of large ones it holds those exactly that are not
clamped, unless the shift is far to the right. Where neither is so for some channel, int64 arithmetic does it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import (
    clip,
    int32_of,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_int64,
    multiply_rounding_up,
    quantize_multipliers,
)
from oplet_builtin_ops.layers.program import Call, convert, repeated, repeats

__all__ = ["Requantizer", "Rounding"]

_FLOAT64: Final = np.dtype(np.float64)
#: By size in bytes: unsigned integer types, and the sign bit of floats.
_UNSIGNED: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4)}
_SIGN_BITS: Final = {size: np.array(-(1 << (8 * size - 1)), f"i{size}") for size in (4, 8)}


class Rounding(Enum):
    """The scaling by which LiteRT turns an accumulator into steps of the output."""

    DOUBLE = "double"  #: 32-bit fixed point, rounded twice
    UP = "up"  #: 32-bit fixed point, the second rounding halves up, as LiteRT's vector code does for channels in groups of eight
    WIDE = "wide"  #: for int64 accumulators: a 16-bit multiplier, rounded once (halves up)
    FLOAT = "float"  #: a float64 product, rounded once (halves away from zero)


#: The scalings with 32-bit fixed point.
_NARROW: Final = (Rounding.DOUBLE, Rounding.UP)
#: The channels that LiteRT's vector code computes at a time.
_GROUP: Final = 8


class _Storing(NamedTuple):
    """The conversion of scaled accumulators to outputs of one type.

    Attributes:
        shifts: the functions that are applied first, in place, and their further arguments.
        integers: the type in which values are clamped, None for float64.
        low: the lower bound of the clamp.
        high: the upper bound of the clamp.
        step: is added last, None for nothing.
    """

    shifts: list[Call]
    integers: np.dtype[Any] | None
    low: Any
    high: Any
    step: Array | None


@dataclass(frozen=True)
class Requantizer:
    """The requantization of one layer's accumulators.

    Attributes:
        scales: the real factor of each channel, input scale * weight scale / output scale.
        offsets: int64, is added to each channel's accumulators first (bias, zero-point corrections).
        limit: an upper bound of |accumulator| + |offset|.
        zero_point: the output's zero point.
        low: the smallest output, after the fused activation.
        high: the largest output.
        rounding: the scaling.
    """

    scales: Array
    offsets: Array
    limit: float
    zero_point: int
    low: int
    high: int
    rounding: Rounding = Rounding.DOUBLE
    _fitting: dict[str, bool] = field(default_factory=dict, init=False, repr=False, compare=False)
    _stores: dict[str, _Storing] = field(default_factory=dict, init=False, repr=False, compare=False)
    _tiled: dict[tuple[str, int, str], Array] = field(default_factory=dict, init=False, repr=False, compare=False)

    def calls(self, accumulators: Array, output: Array, scratch: Array, scaled: bool = False) -> list[Call]:
        """The numpy calls that turn one block of accumulators into outputs; they may overwrite the accumulators.

        Args:
            accumulators: floats with integer values, (rows, channels), contiguous.
            output: the same shape, of the quantized type, contiguous.
            scratch: float64, at least as many values; float32 serves float64 accumulators.
            scaled: whether the accumulators are float64 products of `scaled` weights.
        """
        if not output.size:
            return []
        if not self.fits(output.dtype):
            return [(self._exactly, (accumulators, output))]
        rows, channels = output.shape
        joined = repeats(rows, channels)
        shape = (rows // joined, channels * joined)
        acc = accumulators.reshape(shape)
        scratch = scratch.reshape(-1)[: output.size].reshape(shape)
        # The array that is scaled, and memory that is free meanwhile: float64 accumulators are scaled in place.
        u, spare = (acc, scratch) if acc.dtype == np.float64 else (scratch, acc)
        unsigned = output.view(_UNSIGNED[output.dtype.itemsize]).reshape(shape)
        # Float32 passes take half the time of float64 ones; accumulators that may be too large for float32 are float64 anyway.
        total = acc if acc.dtype == np.float32 and self.limit <= 2.0**24 else u
        # Numpy converts on the way, through a buffer that stays in the cache, which is faster than another pass.
        program: list[Call] = []
        factors = self._repeated("factor", joined)
        if self._is_one_sided and self._is_small:
            # Small products are exact, and so is the offset's product, which is added after the scaling.
            if not scaled:
                program += [(np.multiply, (acc, factors, u)), (np.add, (u, self._repeated("scaled offset", joined), u))]
        else:
            # Large accumulators may cancel against large offsets, so that offsets are added before the scaling.
            program.append((np.add, (acc, self._repeated("offset", joined, total.dtype), total)))
            program.append((np.multiply, (total, factors, u)))
            if self._is_one_sided:
                program.append((np.add, (u, self._repeated("threshold", joined), u)))
            elif self.rounding is Rounding.FLOAT:
                program += _move_from_zero(total, u, spare, np.array(0.5, spare.dtype))
            elif self._has_nudges:
                program += _move_from_zero(total, u, spare, self._repeated("nudge", joined, spare.dtype))
            if self.rounding is Rounding.UP and not self._is_one_sided:
                program.append((np.add, (u, self._repeated("lift", joined), u)))
        return program + self._store(u, spare, unsigned, output.dtype)

    def takes_scaled(self, dtype: np.dtype[Any]) -> bool:
        """Whether accumulators may be products of weights that are scaled already.

        All sums of such products are then multiples of a channel's unit that are exact in float64, in any order of summation.
        """
        return self._is_one_sided and self._is_small and self.fits(dtype)

    def scaled(self, rows: Array) -> Array:
        """Weights times the factors, float64: one row per channel, with one more value in each that is always added."""
        return np.concatenate([rows * self.factors[:, None], self._scaled_offsets[:, None]], axis=1)

    @property
    def _scaled_offsets(self) -> Array:
        """The offsets of scaled accumulators, which are added before truncation."""
        return np.asarray(self.nudges + 0.5 + self.offsets * self.factors)

    def fits(self, dtype: np.dtype[Any]) -> bool:
        """Whether float64 gives exactly the results of fixed point, for outputs of an integer type."""
        if dtype.char not in self._fitting:  # is called for every block
            self._fitting[dtype.char] = self._compute_fits(dtype)
        return self._fitting[dtype.char]

    def _compute_fits(self, dtype: np.dtype[Any]) -> bool:
        if self.rounding is Rounding.FLOAT:
            # Float64 must neither round a number just below a half up, nor clamp one beyond int32.
            if not (self.factors >= 0).all() or not self.limit * float(self.factors.max(initial=0)) < 2.0**30:
                return False
            factors = self.factors[self.factors > 2.0**-1000]
            steps = np.rint(0.5 / factors)
            return self.limit < 2.0**53 and not (steps * factors == math.nextafter(0.5, 0)).any()
        multipliers, shifts = self.multipliers
        if not len(shifts) or (multipliers < 0).any():
            return False
        if self.rounding in _NARROW and self.limit * 2.0 ** max(0, int(shifts.max())) >= 2.0**31:
            return False  # the left shift, or the accumulator itself, might overflow
        if self.rounding is Rounding.WIDE and self.limit * 2.0 ** int(shifts.max()) >= 2.0**31:
            return False  # the truncation to 32 bits might overflow
        # Small numbers are exact. Of large ones, those that are not clamped are.
        return (self._is_small and shifts.min() >= self._unit_bits - 52) or (self.limit < 2.0**52 and self._is_fine(dtype))

    @cached_property
    def multipliers(self) -> tuple[Array, Array]:
        """The fixed-point form of the scales: multipliers, of 16 bits for the wide form, and shifts."""
        multipliers, shifts = quantize_multipliers(self.scales)
        if self.rounding is not Rounding.WIDE:
            return multipliers, shifts
        wide = multipliers.astype(np.int64)
        return np.asarray(np.where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, 0x7FFF)), shifts

    @cached_property
    def factors(self) -> Array:
        """The factors of the accumulators as float64."""
        if self.rounding is Rounding.FLOAT:
            return np.asarray(self.scales, np.float64)
        multipliers, shifts = self.multipliers
        return np.asarray(np.ldexp(multipliers.astype(np.float64), shifts - self._unit_bits))

    @cached_property
    def nudges(self) -> Array:
        """By how much the first of two roundings moves the thresholds of the second one."""
        _, shifts = self.multipliers
        if self.rounding not in _NARROW:
            return np.zeros(len(shifts))
        return np.asarray(np.where(shifts < 0, np.ldexp(0.5, shifts), 0.0))

    @cached_property
    def lifts(self) -> Array:
        """By how much it moves them up for negative numbers too, in place of down."""
        return np.asarray(np.where(self._is_up, self.nudges, 0.0))

    @property
    def _is_up(self) -> NDArray[np.bool_]:
        """The channels that are rounded halves up, as booleans."""
        channels = len(self.multipliers[1])
        return np.asarray(np.arange(channels) < (channels // _GROUP * _GROUP if self.rounding is Rounding.UP else 0))

    @cached_property
    def _has_nudges(self) -> bool:
        return bool((self.nudges - self.lifts).any())

    @cached_property
    def _smallest_shift(self) -> int:
        return int(self.multipliers[1].min())

    @property
    def _unit_bits(self) -> int:
        """The bits of a multiplier."""
        return 15 if self.rounding is Rounding.WIDE else 31

    @cached_property
    def _is_small(self) -> bool:
        """Whether products of accumulators and multipliers stay below 2**52 units."""
        return self.limit < 2.0 ** (52 - self._unit_bits)

    @cached_property
    def _is_one_sided(self) -> bool:
        """Whether all negative results are clamped, so that their rounding does not matter."""
        return self.low >= self.zero_point and self.rounding is not Rounding.FLOAT

    def _is_fine(self, dtype: np.dtype[Any]) -> bool:
        """Whether float64 represents all numbers up to four times the output's range exactly, to the unit."""
        return bool(8 * dtype.itemsize + 2 + self._unit_bits - self._smallest_shift <= 53)

    def _repeated(self, what: str, joined: int, dtype: np.dtype[Any] = _FLOAT64) -> Array:
        """A value per channel, repeated for as many rows as are joined."""
        key = what, joined, dtype.char
        if key not in self._tiled:
            if what == "factor":
                values = self.factors
            elif what == "offset":
                values = self.offsets
            elif what == "nudge":
                values = self.nudges - self.lifts
            elif what == "lift":
                values = self.lifts
            elif what == "threshold":
                values = self.nudges + 0.5
            else:
                values = self._scaled_offsets
            self._tiled[key] = repeated(values.astype(dtype), joined)
        return self._tiled[key]

    def _store(self, u: Array, spare: Array, unsigned: Array, dtype: np.dtype[Any]) -> list[Call]:
        """Truncate, clamp, and store with the zero point added."""
        if dtype.char not in self._stores:
            self._stores[dtype.char] = self._storing(dtype)
        shifts, integers, low, high, step = self._stores[dtype.char]
        program: list[Call] = [(function, (u, *operands, u)) for function, operands in shifts]
        if integers is not None:
            # They are faster to clamp, and to store.
            whole = _leading(spare, integers)
            program.append((convert, (whole, u)))
            u = whole
        program += [(clip, (u, low, high, u)), (convert, (unsigned, u))]
        if step is not None:
            program.append((np.add, (unsigned, step, unsigned)))
        return program

    def _storing(self, dtype: np.dtype[Any]) -> _Storing:
        shifts: list[Call] = []
        integers, high = self._integers(dtype), self.high
        base = self.zero_point
        if self._is_one_sided:
            high = max(high, self.low)
        elif integers is None or self.rounding is not Rounding.FLOAT:
            # In unsigned numbers that count from the type's lowest one, truncation differs from floor only where values are
            # clamped.
            base = 0 if dtype.kind == "u" else -(1 << (8 * dtype.itemsize - 1))
            whole = np.float64(self.zero_point - base)
            if self.rounding is Rounding.FLOAT:
                shifts += [(np.trunc, ()), (np.add, (whole,))]
            elif self._is_fine(dtype):
                shifts.append((np.add, (whole + 0.5,)))
            else:
                shifts += [(np.add, (np.float64(0.5),)), (np.floor, ()), (np.add, (whole,))]
        kind = np.float64 if integers is None else integers.type
        step = np.array(base % (1 << (8 * dtype.itemsize)), _UNSIGNED[dtype.itemsize]) if base else None
        return _Storing(shifts, integers, kind(self.low - base), kind(high - base), step)

    def _integers(self, dtype: np.dtype[Any]) -> np.dtype[Any] | None:
        """The integer type that surely holds the values to be clamped, None if they may be too large."""
        largest = self.limit * float(self.factors.max()) + 2.0 ** (8 * dtype.itemsize + 1)
        if dtype.itemsize == 1 and largest < 2.0**15:
            return np.dtype(np.int16)
        return np.dtype(np.int32) if largest < 2.0**31 else None

    def _exactly(self, accumulators: Array, output: Array) -> None:
        multipliers, shifts = quantize_multipliers(self.scales)
        total = accumulators.astype(np.int64) + self.offsets
        zero_point = np.int32(self.zero_point)
        if self.rounding in _NARROW:
            # An int32 accumulator wraps around.
            narrow = total.astype(np.int32)
            scaled = multiply_by_quantized_multiplier(narrow, multipliers, shifts)
            if self.rounding is Rounding.UP:
                scaled = np.where(self._is_up, multiply_rounding_up(narrow, multipliers, shifts), scaled)
        elif self.rounding is Rounding.WIDE:
            scaled = multiply_by_quantized_multiplier_int64(total, multipliers, shifts)
        else:
            with np.errstate(all="ignore"):
                product = total * np.asarray(self.scales, np.float64)
                scaled = int32_of(product + np.copysign(math.nextafter(0.5, 0), product))
        # The sum wraps around, too.
        np.copyto(output, np.clip(scaled + zero_point, self.low, self.high), casting="unsafe")


def _move_from_zero(total: Array, u: Array, spare: Array, steps: Array) -> list[Call]:
    """Move each number away from zero by a step of at most a half; zero is moved either way.

    Args:
        total: numbers of the same signs; integers in the memory of `spare`, unless it is `u` itself.
        u: the numbers.
        spare: scratch, float32 or float64.
        steps: the steps, of the same type.
    """
    sign_bit = _SIGN_BITS[spare.itemsize]
    signs, sizes = spare.view(sign_bit.dtype), steps.view(sign_bit.dtype)
    copy: list[Call] = [(np.copyto, (spare, u))] if total is u else []
    return [
        *copy,
        (np.bitwise_and, (signs, sign_bit, signs)),
        (np.bitwise_or, (signs, sizes, signs)),
        (np.add, (u, spare, u)),
    ]


def _leading(values: Array, dtype: np.dtype[Any]) -> Array:
    """The first bytes of the memory as as many values of a smaller type."""
    return values.reshape(-1).view(dtype)[: values.size].reshape(values.shape)
