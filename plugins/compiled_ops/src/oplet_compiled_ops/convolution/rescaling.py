"""The numbers of an output stage whose sums are exact: offsets with the sums of weights, factors, and what is added before rounding."""

from __future__ import annotations

import numpy as np

__all__ = ["RESCALING"]

_FRACTION = 1 << 52


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
            for tap in range(taps):
                total += weights[c * row + tap * step]
                width += abs(np.int32(weights[c * row + tap * step]))
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
        multiplier = ((bits[c] & (_FRACTION - 1)) + _FRACTION + (1 << 21)) >> 22
        held[0] &= multiplier < 1 << 31
        unit = 1.0 / np.float64(1 << (1053 - (bits[c] >> 52)))
        numbers[0, c] = multiplier * unit
        numbers[1, c] = unit * 0.5 + unit * 2.0**30
        numbers[2, c] = unit * 0.5 - unit * 2.0**30
