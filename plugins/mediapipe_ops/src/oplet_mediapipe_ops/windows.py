"""Positions of a window sliding over a large axis, one per element of a small axis, grouped by tap.

Position `s` of the small axis and offset `k` in the window meet at position `s * stride - pad + k` of the large one.
Pooling reads there; unpooling and transposed convolution write there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["Tap", "taps"]


class Tap(NamedTuple):
    """Input and output positions of one offset in a sliding window: equally long slices of both axes, paired in order."""

    offset: int
    small: slice
    large: slice


#: Taps that are kept; more are made when they are asked for.
_KEPT = 256


class _Taps(Sequence[Tap]):
    """A lazy sequence of taps, since there may be as many as a tensor has values."""

    def __init__(self, offsets: range, small: int, large: int, stride: int, pad: int) -> None:
        self._offsets, self._sizes = offsets, (small, large, stride, pad)

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, number: Any) -> Any:
        offset = self._offsets[number]
        small, large, stride, pad = self._sizes
        first = max(0, -((offset - pad) // stride))
        stop = max(first, min(small, (large - 1 + pad - offset) // stride + 1))
        begin = first * stride - pad + offset
        return Tap(offset, slice(first, stop), slice(begin, begin + max(0, (stop - first - 1) * stride + 1), stride))


def taps(small: int, large: int, stride: int, window: int, pad: int) -> Sequence[Tap]:
    """Return the slices of both axes for each offset of a window that slides over the large axis, in ascending order of offsets.

    Position s of the small axis and offset k meet at position s * stride - pad + k of the large one; offsets that meet none are
    left out.

    Args:
        small: the length of the axis with one element per window.
        large: the length of the axis that the windows slide over.
        stride: the distance between windows.
        window: the length of the window.
        pad: the padding before the large axis.
    """
    found = _Taps(range(max(0, pad - (small - 1) * stride), min(window, large + pad)), small, large, stride, pad)
    return found if len(found) > _KEPT else [tap for tap in found if tap.small.start < tap.small.stop]
