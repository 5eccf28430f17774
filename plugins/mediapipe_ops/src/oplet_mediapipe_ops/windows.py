"""Where a window that slides over a large axis touches it, once per position of a small axis.

Position `s` of the small axis and offset `k` in the window meet at position `s * stride - pad + k` of the large one.
Pooling reads there; unpooling and transposed convolution write there.
"""

from __future__ import annotations

from typing import NamedTuple

from oplet import charge, checkpoint
from oplet.schema.enums import Padding

__all__ = ["Tap", "padding_before", "taps", "windows_in"]

#: A tap with its two slices.
_BYTES_PER_TAP = 300


class Tap(NamedTuple):
    """All meetings of one offset in the window: equally many positions of both axes."""

    offset: int
    small: slice
    large: slice


def windows_in(large: int, stride: int, window: int, padding: Padding) -> int:
    """How many positions the window has on an axis; none or fewer where it does not fit, rounded as C does."""
    if padding == Padding.SAME:
        return -(-large // stride)
    room = large - window + stride
    return room // stride if room >= 0 else -(-room // stride)


def padding_before(small: int, large: int, stride: int, window: int) -> int:
    """The padding that comes first: half of what the last window sticks out, rounded down."""
    return max(0, (small - 1) * stride + window - large) // 2


def taps(small: int, large: int, stride: int, window: int, pad: int) -> list[Tap]:
    """The offsets that meet the large axis anywhere, in ascending order; no more of them than the axes have room for."""
    found = []
    offsets = range(max(0, pad - (small - 1) * stride), min(window, large + pad))
    charge(_BYTES_PER_TAP * len(offsets))
    for offset in offsets:
        if not offset & 1023:
            checkpoint()
        first = max(0, -((offset - pad) // stride))
        stop = min(small, (large - 1 + pad - offset) // stride + 1)
        if first < stop:
            begin = first * stride - pad + offset
            found.append(Tap(offset, slice(first, stop), slice(begin, begin + (stop - first - 1) * stride + 1, stride)))
    return found
