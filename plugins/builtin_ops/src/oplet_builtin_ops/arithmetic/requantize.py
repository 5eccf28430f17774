"""Requantization of accumulators to output values as a few float64 numpy passes over whole blocks.

`oplet.kernels.requantization` has the definition, and says where float64 gives the same bit for bit. Channels for
which it does not are computed by the definition itself.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np

from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import clip
from oplet.kernels.requantization import Requantization, Rounding
from oplet.records import Row
from oplet_builtin_ops.layers.program import Call, convert, repeated, repeats

__all__ = ["Requantizer"]

_FLOAT64: Final = np.dtype(np.float64)
#: By size in bytes: unsigned integer types, and the sign bit of floats.
_UNSIGNED: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4)}
#: The definition takes as long for one channel as the passes do for this many.
_SLOWER: Final = 4
_SIGN_BITS: Final = {size: np.array(-(1 << (8 * size - 1)), f"i{size}") for size in (4, 8)}


class _Storing(Row):
    """How scaled accumulators become integers of one output type: shifted, clamped, stored, and moved by a step.

    Attributes:
        shifts: numpy functions that are applied first, in place, each with its operands after the accumulators.
        integers: the type in which values are clamped, None for float64.
        low: the lower bound of the clamp.
        high: the upper bound of the clamp.
        step: the number that is added to the stored integers, which wraps around; None for none.
    """

    shifts: list[Call]
    integers: np.dtype[Any] | None
    low: Any
    high: Any
    step: Array | None


class _Parts(Row):
    """Channels that are requantized in different ways.

    Attributes:
        others: all channels, with zeros in place of the parameters of the following.
        filled: the indices of those whose outputs are constant.
        values: their outputs.
        channels: the indices of those that are requantized by the definition.
        few: their parameters.
    """

    others: Requantizer
    filled: Array
    values: Array
    channels: Array
    few: Requantizer


class Requantizer(Requantization):
    """Requantizes one layer's accumulators, in blocks that stay in the CPU cache."""

    @cached_property
    def _stores(self) -> dict[str, _Storing]:
        return {}

    @cached_property
    def _tiled(self) -> dict[tuple[str, int, str], Array]:
        return {}

    @cached_property
    def _parts(self) -> dict[str, _Parts | None]:
        return {}

    def calls(self, accumulators: Array, output: Array, scratch: Array, scaled: bool = False) -> list[Call]:
        """Return numpy calls that requantize one block of accumulators into `output`; they may overwrite the accumulators.

        Args:
            accumulators: floats with integer values, (rows, channels), contiguous.
            output: the same shape, of the quantized type, contiguous.
            scratch: memory for at least as many values as the accumulators; float64, or float32 if the accumulators are float64.
            scaled: whether the accumulators are float64 products with the weights that `scaled` returns.
        """
        if not output.size:
            return []
        if not self.fits(output.dtype):
            return self._calls_of_parts(accumulators, output, scratch)
        rows, channels = output.shape
        joined = repeats(rows, channels)
        shape = (rows // joined, channels * joined)
        acc = accumulators.reshape(shape)
        scratch = scratch.reshape(-1)[: output.size].reshape(shape)
        # The array that is scaled, and memory that is free meanwhile: float64 accumulators are scaled in place.
        u, spare = (acc, scratch) if acc.dtype == np.float64 else (scratch, acc)
        unsigned = output.view(_UNSIGNED[output.dtype.itemsize]).reshape(shape)
        # Float32 passes take half the time of float64 ones; accumulators that may be too large for float32 are float64 anyway.
        total = acc if acc.dtype == np.float32 and self.limits.max() <= 2.0**24 else u
        # Numpy converts on the way, through a buffer that stays in the cache, which is faster than another pass.
        program: list[Call] = []
        factors = self._repeated("factor", joined)
        if self.is_one_sided and self.is_small:
            # Small products are exact, and so is the offset's product, which is added after the scaling.
            if not scaled:
                program += [(np.multiply, (acc, factors, u)), (np.add, (u, self._repeated("scaled offset", joined), u))]
        else:
            # Large accumulators may cancel against large offsets, so that offsets are added before the scaling.
            program.append((np.add, (acc, self._repeated("offset", joined, total.dtype), total)))
            program.append((np.multiply, (total, factors, u)))
            if self.is_one_sided:
                program.append((np.add, (u, self._repeated("threshold", joined), u)))
            elif self.rounding is Rounding.FLOAT:
                program += _move_from_zero(total, u, spare, np.array(0.5, spare.dtype))
            elif self._has_nudges:
                program += _move_from_zero(total, u, spare, self._repeated("nudge", joined, spare.dtype))
            if self.rounding is Rounding.UP and not self.is_one_sided:
                program.append((np.add, (u, self._repeated("lift", joined), u)))
        return program + self._store(u, spare, unsigned, output.dtype)

    def _calls_of_parts(self, accumulators: Array, output: Array, scratch: Array) -> list[Call]:
        """Return numpy calls that requantize the channels that do not fit by the definition, or fill them if their outputs are
        constant, and the others as usual.
        """
        if output.dtype.char not in self._parts:
            self._parts[output.dtype.char] = self._divide(output.dtype)
        parts = self._parts[output.dtype.char]
        if parts is None:
            return [(self.requantize, (accumulators, output))]
        others, filled, values, channels, few = parts
        shape = len(output), len(channels)
        sums, outputs = np.empty(shape, accumulators.dtype), np.empty(shape, output.dtype)
        program: list[Call] = [(np.take, (accumulators, channels, 1, sums))] if len(channels) else []
        program += others.calls(accumulators, output, scratch)
        if len(channels):
            program += [(few.requantize, (sums, outputs)), (output.__setitem__, ((slice(None), channels), outputs))]
        return [*program, (output.__setitem__, ((slice(None), filled), values))]

    def _divide(self, dtype: np.dtype[Any]) -> _Parts | None:
        """Divide the channels by how they are requantized; None if all are by the definition."""
        fitting = self.fitting(dtype)
        constant, outputs = self.constants()
        filled, channels = np.flatnonzero(constant & ~fitting), np.flatnonzero(~constant & ~fitting)
        if len(channels) and (self.rounding is Rounding.UP or len(channels) * _SLOWER > len(fitting)):
            return None
        values = self.scales, self.offsets, self.limits
        scales, offsets, limits = (np.where(fitting, each, 0) for each in values)
        others = self.__replace__(scales=scales, offsets=offsets, limit=limits)
        scales, offsets, limits = (each[channels] for each in values)
        few = self.__replace__(scales=scales, offsets=offsets, limit=limits)
        return _Parts(others, filled, outputs[filled].astype(dtype), channels, few)

    def takes_scaled(self, dtype: np.dtype[Any]) -> bool:
        """Return whether the weights may be multiplied by the output factors beforehand, so that sums come out already scaled.

        That is so if all sums of such products are exact in float64, in any order of summation.
        """
        return self.is_one_sided and self.is_small and self.fits(dtype)

    def scaled(self, rows: Array) -> Array:
        """Return the weights times their output factors, float64: one row per channel, with the constant offset as a last column."""
        return np.concatenate([rows * self.factors[:, None], self._scaled_offsets[:, None]], axis=1)

    @property
    def _scaled_offsets(self) -> Array:
        """Return the per-channel offsets that are added to scaled accumulators before truncation."""
        return np.asarray(self.nudges + 0.5 + self.offsets * self.factors)

    @cached_property
    def _has_nudges(self) -> bool:
        return bool((self.nudges - self.lifts).any())

    def _repeated(self, what: str, joined: int, dtype: np.dtype[Any] = _FLOAT64) -> Array:
        """Return the per-channel parameter `what`, tiled for `joined` rows; made once."""
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
        """Return numpy calls that truncate scaled accumulators `u` in place and store them as integers of `dtype`, clamped."""
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
        if self.is_one_sided:
            high = max(high, self.low)
        elif integers is None or self.rounding is not Rounding.FLOAT:
            # In unsigned numbers that count from the type's lowest one, truncation differs from floor only where values are
            # clamped.
            base = 0 if dtype.kind == "u" else -(1 << (8 * dtype.itemsize - 1))
            whole = np.float64(self.zero_point - base)
            if self.rounding is Rounding.FLOAT:
                shifts += [(np.trunc, ()), (np.add, (whole,))]
            elif self.is_fine(dtype):
                shifts.append((np.add, (whole + 0.5,)))
            else:
                shifts += [(np.add, (np.float64(0.5),)), (np.floor, ()), (np.add, (whole,))]
        kind = np.float64 if integers is None else integers.type
        step = np.array(base % (1 << (8 * dtype.itemsize)), _UNSIGNED[dtype.itemsize]) if base else None
        return _Storing(shifts, integers, kind(self.low - base), kind(high - base), step)

    def _integers(self, dtype: np.dtype[Any]) -> np.dtype[Any] | None:
        """Return the smallest integer type that holds all values before clamping; None if they may be too large."""
        largest = float((self.limits * self.factors).max()) + 2.0 ** (8 * dtype.itemsize + 1)
        if dtype.itemsize == 1 and largest < 2.0**15:
            return np.dtype(np.int16)
        return np.dtype(np.int32) if largest < 2.0**31 else None


def _move_from_zero(total: Array, u: Array, spare: Array, steps: Array) -> list[Call]:
    """Return numpy calls that move each number away from zero by `steps`, at most 1/2; the direction for zero is unspecified.

    Args:
        total: numbers of the same signs as `u`: either `u` itself or what the memory of `spare` holds.
        u: the numbers, which are moved in place.
        spare: float32 or float64, overwritten.
        steps: the steps, of the type of `spare`.
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
    """Return a view of the leading part of `values`' memory with the same shape and a smaller element type."""
    return values.reshape(-1).view(dtype)[: values.size].reshape(values.shape)
