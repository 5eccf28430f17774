"""The numbers of an output stage whose sums are exact: offsets with the sums of weights, factors, and what is added before rounding."""

from __future__ import annotations

import numpy as np

__all__ = ["RESCALING"]

_FRACTION = 1 << 52


def RESCALING(  # type: ignore[no-untyped-def]
    weights, taps, across, sums, offsets, left, added, scales, bits, is_float, widest, largest, numbers, held
):
    """Write a layer's offsets and numbers, if bounds for all channels together show that every sum is exact; most layers of bytes are
    such.

    Args:
        weights: the weights, a row of `taps` for each channel, or, where `across`, a row of channels for each tap.
        taps: the weights of a channel; 0 where `sums` are given.
        across: whether channels follow one another.
        sums: each channel's sum of weights, and a bound of the sum of their magnitudes; written unless given.
        offsets: what is added to each channel's sum; -`left` times the weights' sum is added first, `added` times it at the end.
        left: the zero point of the inputs.
        added: what is added to each input besides.
        scales: the factor of each channel.
        bits: the same memory, as integers.
        is_float: whether sums are scaled by the factors themselves, not by fixed-point multipliers.
        widest: the largest magnitude of an input.
        largest: the largest sum that is exact.
        numbers: receives the factors, and what is added to a scaled sum that is above or below 0; of shape (3, channels or more).
        held: receives 1 if all sums are exact; otherwise 0, and the rest is undefined.
    """
    channels = scales.size
    if taps and across:
        sums[:] = 0
        for tap in range(taps):
            line = weights[tap * channels : (tap + 1) * channels]
            for c in range(channels):
                sums[0, c] += line[c]
                sums[1, c] += abs(np.int32(line[c]))
    elif taps:
        for c in range(channels):
            line = weights[c * taps : (c + 1) * taps]
            total, width = 0, 0
            for tap in range(taps):
                total += line[tap]
                width += abs(np.int32(line[tap]))
            sums[0, c], sums[1, c] = total, width
    limit, highest, first, last, fits = 0.0, 0.0, 0, -2000, True
    for c in range(channels):
        offset = offsets[c] - sums[0, c] * left
        offsets[c] = offset + sums[0, c] * added
        limit = max(limit, abs(np.float64(offset)) + np.float64(sums[1, c]) * widest)
        scale = scales[c]
        highest = max(highest, scale)
        fits &= scale > 0 or (is_float and scale == 0)
        exponent = (bits[c] >> 52) - 1022
        first, last = min(first, exponent), max(last, exponent)
    fits &= limit <= largest
    if is_float:
        held[0] = fits and limit * highest < 2.0**30
        for c in range(channels):
            numbers[0, c] = scales[c]
        return
    # A scaled sum is less than half of `limit`, and a difference of two is a multiple of the unit, which the outputs, or the sums, are few
    # enough for.
    if not (fits and last < 0 and (first >= -11 or (first >= -20 and limit + np.float64(1 << (1 - first)) <= 2.0**21))):
        held[0] = 0
        return
    for c in range(channels):
        exponent = (bits[c] >> 52) - 1022
        multiplier = ((bits[c] & (_FRACTION - 1)) + _FRACTION + (1 << 21)) >> 22
        fits &= multiplier < 1 << 31
        unit = 1.0 / np.float64(1 << (31 - exponent))
        numbers[0, c] = multiplier * unit
        numbers[1, c] = unit * 0.5 + unit * 2.0**30
        numbers[2, c] = unit * 0.5 - unit * 2.0**30
    held[0] = fits
