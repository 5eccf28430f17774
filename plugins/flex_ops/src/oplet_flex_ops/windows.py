"""Windows along one axis for convolutions and pools: their number, and the elements that each window tap reads.

Numerics: GetWindowedOutputSize in tensorflow/core/framework/kernel_shape_util.cc
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from oplet import ensure
from oplet.kernels.windows import padding_before, windows_in
from oplet.schema.enums import Padding

__all__ = ["Tap", "WindowAxis", "taps", "window_axis"]


class Tap(NamedTuple):
    """The elements `source` that one position of a window (a tap) reads along an axis, in the windows `out`."""

    out: slice
    source: slice


class WindowAxis(NamedTuple):
    """The windows along one axis: size, taps, stride, dilation, padding.

    Attributes:
        size: the number of elements.
        window: the number of elements of a window, not counting the gaps of a dilation.
        stride, dilation: the steps from window to window, and from element to element within one.
        before: the padding before the first element.
        out: the number of windows.
    """

    size: int
    window: int
    stride: int
    dilation: int
    before: int
    out: int

    @property
    def met(self) -> range:
        """The indices of the taps (positions in a window) that lie inside the axis for at least one window."""
        first = max(0, -(-(self.before - (self.out - 1) * self.stride) // self.dilation))
        return range(first, min(self.window, -(-(self.size + self.before) // self.dilation)))

    def tap(self, number: int) -> Tap:
        """Return the windows in which a tap lies inside the axis, and the elements that it reads there."""
        offset = number * self.dilation - self.before
        first = max(0, -(offset // self.stride)) if offset < 0 else 0
        last = min(self.out, (self.size - 1 - offset) // self.stride + 1)
        if last <= first:
            return Tap(slice(0, 0), slice(0, 0))
        start = first * self.stride + offset
        return Tap(slice(first, last), slice(start, start + (last - first - 1) * self.stride + 1, self.stride))


def window_axis(size: int, window: int, stride: int, dilation: int, same: bool) -> WindowAxis:
    """Return the windows along an axis of `size` elements, with SAME or VALID padding.

    Raises:
        EnsureError: a window is larger than the axis and there is no padding.
    """
    out = windows_in(size, window, stride, Padding.SAME if same else Padding.VALID, dilation)
    ensure(out >= 0, lambda: f"a window that reaches over {(window - 1) * dilation + 1} elements does not fit an axis of {size}.")
    return WindowAxis(size, window, stride, dilation, padding_before(out, size, window, stride, dilation) if same else 0, out)


def taps(axes: Sequence[WindowAxis]) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...], tuple[Any, ...]]]:
    """Yield for each tap (position in a multi-axis window) its position, the index of the windows, and the index of what they
    read.

    Both indices are for arrays of shape [batch, ..., channels]: the windows at the first index read the elements at the second.
    """
    whole = slice(None)
    for position in product(*(axis.met for axis in axes)):
        there = [axis.tap(number) for axis, number in zip(axes, position)]
        if all(tap.out.stop > tap.out.start for tap in there):
            yield position, (whole, *(tap.out for tap in there)), (whole, *(tap.source for tap in there))
