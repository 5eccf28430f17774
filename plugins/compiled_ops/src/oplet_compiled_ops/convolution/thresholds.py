"""Thresholds of channels whose scaled sums float64 does not hold exactly, such that it computes their outputs exactly all the same.

The output of a sum x is floor((x * multiplier + added) / 2**bits), with one `added` for sums from zero on and one for those below. It
is a staircase, and float64 computes one that rises where it does as soon as the sums on both sides of each step fall on the right
side in float64, too. Each lies a known distance from the step, at least 1 / 2**bits. The threshold is moved so that the smallest
distances on both sides are equal; if they exceed what float64 rounds away, its staircase is the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oplet.kernels.requantization import Requantization, Rounding
from oplet_compiled_ops.library.memory import Array

__all__ = ["RESCALING", "middle_thresholds"]

#: The least distance of scaled sums from a step: beyond 2**-43, what float64 rounds away of numbers up to 2**9 in two operations.
_LEAST = 2.0**-40
#: Sums have 32 bits, multipliers 31.
_MOST = 2.0**62


def middle_thresholds(requantizer: Requantization, channels: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return thresholds of some channels, and for which of these rounding sum * factor + threshold to the nearest integer gives the
    output less its zero point, exactly, before it is clamped to 8 bits.

    Args:
        requantizer: the layer's requantization, in 32-bit fixed point, with outputs of 8 bits.
        channels: the channels' indices.

    Returns:
        (thresholds of sums from zero on, those of sums below zero, mask of the channels for which they are exact)
    """
    multipliers, shifts = (values[channels].astype(np.int64) for values in requantizer.multipliers)
    limits = requantizer.limits[channels]
    sure = (shifts < 0) & (multipliers > 0) & requantizer.is_tame[channels]
    sure &= np.full(len(channels), requantizer.rounding in (Rounding.DOUBLE, Rounding.UP))
    bits = 31 + np.where(sure, -shifts, 1)
    multipliers, most = np.where(sure, multipliers, 1), np.where(sure, limits, 1).astype(np.int64)
    steps = np.arange(requantizer.low - requantizer.zero_point, requantizer.high - requantizer.zero_point + 1)
    found = []
    for below in (False, True):
        more = np.full(len(channels), 1 << 30, np.int64)
        if below:
            more -= np.where(requantizer.is_up[channels], 0, 1 << 31)
        first, last = (-most, np.full_like(most, -1)) if below else (np.zeros_like(most), most)
        thresholds, margins = _middle(multipliers, more, bits, first, last, steps)
        found.append(thresholds)
        sure &= margins >= _LEAST
    return found[0], found[1], sure


def _middle(multipliers: Array, more: Array, bits: Array, first: Array, last: Array, steps: Array) -> tuple[Array, Array]:
    """Return the threshold of each channel for the sums from `first` to `last`, and the distance that all sums keep from steps.

    Args:
        multipliers: of each channel; int64, as all arguments.
        more: what is added to the products besides half of 2**bits.
        bits: by how many bits a channel's sums are shifted to the right.
        first: the smallest sum of each channel.
        last: the largest.
        steps: the outputs less their zero point, in order.
    """
    multipliers, bits, first, last = (values[:, None] for values in (multipliers, bits, first, last))
    half = np.int64(1) << bits - 1
    added = more[:, None] + half
    # Steps that no sum reaches would overflow; they are replaced by one that is near.
    places = np.ldexp(steps.astype(np.float64), bits)
    starts = np.where((places >= -_MOST) & (places < 2 * _MOST), steps, 0) << bits
    sums = -((added - starts) // multipliers)  # the first sum on each step
    sums = np.concatenate([np.clip(sums, first, last), np.clip(sums - 1, first, last), first, last], axis=1)
    values = sums * multipliers + added
    outputs = values >> bits
    above = values - (outputs << bits)
    whole = np.int64(1) << bits
    # What is clamped may lie beyond the steps at the ends.
    reaches = np.where((outputs > steps[0]) & (outputs <= steps[-1]), above, whole).min(axis=1)
    lacks = np.where((outputs >= steps[0]) & (outputs < steps[-1]), whole - above, whole).min(axis=1)
    thresholds = np.ldexp(more + (lacks - reaches) / 2, -bits[:, 0])
    return np.asarray(thresholds), np.asarray(np.ldexp((lacks + reaches) / 2, -bits[:, 0]))


def RESCALING(  # type: ignore[no-untyped-def]
    weights, taps, row, step, sums, offsets, left, added, scales, bits, is_float, widest, largest, numbers, held
):
    """Write a layer's offsets and numbers if bounds for all channels together show that every sum is exact; most layers of bytes are such.

    Weight `tap` of channel `c` is `weights[c * row + tap * step]`. If `taps` is not 0, `sums` receives the sum of each channel's weights and
    of their magnitudes; otherwise it gives them. `offsets` begin as biases: -`left` (the inputs' zero point) and `added` times the weights'
    sum are added. `bits` is the memory of `scales`, the channels' factors, of which fixed-point multipliers are made unless `is_float`. An
    input is at most `widest`, an exact sum at most `largest`. `numbers` receives the factors, and what is added to a scaled sum above and
    below 0; `held` 1, or 0 where a sum may be inexact.
    """
    limit, highest, first, last = 0.0, 0.0, 0, -2000
    for c in range(scales.size):
        if taps:
            total, width = 0, 0
            if step == 1:  # which vector instructions read
                for weight in weights[c * row : c * row + taps]:
                    total += weight
                    width += abs(np.int64(weight))
            else:
                for tap in range(taps):
                    total += weights[c * row + tap * step]
                    width += abs(np.int64(weights[c * row + tap * step]))
            sums[0, c], sums[1, c] = total, width
        offset, scale = offsets[c] - sums[0, c] * left, scales[c]
        offsets[c] = offset + sums[0, c] * added
        numbers[0, c] = scale
        limit = max(limit, abs(np.float64(offset)) + np.float64(sums[1, c]) * widest)
        if not (scale > 0 or (is_float and scale == 0)):
            limit = np.inf
        highest = max(highest, scale)
        exponent = (bits[c] >> 52) - 1022
        first, last = min(first, exponent), max(last, exponent)
    if is_float:
        held[0] = limit <= largest and limit * highest < 2.0**30
        return
    # A scaled sum is less than half of `limit`; a difference of two is a multiple of the unit, and the outputs, or the sums, are few enough.
    fits = limit <= largest and last < 0 and first >= -20
    held[0] = fits and (first >= -11 or limit + np.float64(1 << (1 - first)) <= 2.0**21)
    for c in range(scales.size if held[0] else 0):
        multiplier = ((bits[c] & ((1 << 52) - 1)) + (1 << 52) + (1 << 21)) >> 22
        held[0] &= multiplier < 1 << 31
        unit = 1.0 / np.float64(1 << (1053 - (bits[c] >> 52)))
        numbers[0, c] = multiplier * unit
        numbers[1, c] = unit * 0.5 + unit * 2.0**30
        numbers[2, c] = unit * 0.5 - unit * 2.0**30
