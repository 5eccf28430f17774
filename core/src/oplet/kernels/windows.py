"""Geometry of sliding windows along an axis: the number of windows and the padding, for SAME and VALID.

A window has `filter` taps that are `dilation` apart, and successive windows are `stride` apart. SAME has ceil(size / stride) windows and
puts the larger half of the padding after the input; VALID has the windows that fit without padding. Source: tflite/kernels/padding.h

    >>> from oplet.schema.enums import Padding
    >>> window_axis("height", Padding.SAME, size=5, filter=3, stride=2)
    Axis(size=5, filter=3, stride=2, dilation=1, out=3, before=1)
    >>> windows_in(5, filter=3, stride=2, padding=Padding.VALID)
    2
"""

from __future__ import annotations

from functools import lru_cache

from oplet.ops.context import ensure, ensure_fits
from oplet.records import Row
from oplet.schema.enums import Padding

__all__ = ["Axis", "Windows2D", "padding_around", "padding_before", "window_axis", "windows_in"]


def windows_in(size: int, filter: int, stride: int, padding: Padding, dilation: int = 1) -> int:
    """Return the number of windows along an axis.

    With VALID padding and a window larger than the input the result is 0 if it exceeds the input by less than two strides, else
    negative. All arguments must be above zero, which `window_axis` checks.
    """
    if padding == Padding.SAME:
        return -(-size // stride)
    room = size + stride - (filter - 1) * dilation - 1
    return room // stride if room >= 0 else -(-room // stride)  # rounded towards zero, as C++ divides


def padding_before(out: int, size: int, filter: int, stride: int, dilation: int = 1) -> int:
    """Return the padding before the input: half of the elements by which `out` windows exceed an axis of `size`, rounded down."""
    return max((out - 1) * stride + (filter - 1) * dilation + 1 - size, 0) // 2


def padding_around(size: int, filter: int, stride: int, padding: Padding, dilation: int = 1) -> tuple[int, int]:
    """Return the padding before and after the input along an axis; (0, 0) for VALID.

    >>> padding_around(4, filter=2, stride=1, padding=Padding.SAME)
    (0, 1)
    """
    if padding != Padding.SAME:
        return 0, 0
    missing = max((-(-size // stride) - 1) * stride + (filter - 1) * dilation + 1 - size, 0)
    return missing // 2, missing - missing // 2


class Axis(Row):
    """Geometry of the windows along one axis; all sizes are in elements.

    Attributes:
        size: the input's size along the axis.
        filter: the number of taps of a window.
        stride: the distance between windows.
        dilation: the distance between taps.
        out: the number of windows, which is the output's size.
        before: the padding before the input.
    """

    size: int
    filter: int
    stride: int
    dilation: int
    out: int
    before: int

    @property
    def span(self) -> int:
        """The size of a window from its first tap to its last: (filter - 1) * dilation + 1."""
        return (self.filter - 1) * self.dilation + 1

    @property
    def padded(self) -> int:
        """The size of the input with all padding that a window reads."""
        return max(self.before + self.size, (self.out - 1) * self.stride + (self.filter - 1) * self.dilation + 1)


class Windows2D(Row):
    """All windows over a batch of maps of shape (batch, height, width, channels).

    Attributes:
        batch: number of maps.
        height: the windows along the height.
        width: the windows along the width.
        channels: number of channels of a map.

    Examples:
        >>> from oplet.schema.enums import Padding
        >>> rows, columns = (window_axis(name, Padding.SAME, 5, filter=3, stride=2) for name in ("height", "width"))
        >>> windows = Windows2D(2, rows, columns, 8)
        >>> windows.count, windows.padded_shape
        (18, (2, 7, 7, 8))
    """

    batch: int
    height: Axis
    width: Axis
    channels: int

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of windows (it hides the tuple method `count`)."""
        return self.batch * self.height.out * self.width.out

    @property
    def padded_shape(self) -> tuple[int, int, int, int]:
        """The map's shape with its padding."""
        return self.batch, self.height.padded, self.width.padded, self.channels

    @property
    def is_padded(self) -> bool:
        """Whether some window reads beyond the map."""
        return self.height.padded != self.height.size or self.width.padded != self.width.size


@lru_cache(maxsize=1024)
def window_axis(name: str, padding: Padding, size: int, filter: int, stride: int, dilation: int = 1) -> Axis:
    """Compute the geometry of the windows along one axis, by TensorFlow's SAME and VALID rules.

    Args:
        name: the axis in messages, "height".

    Raises:
        UnfitError: the input's size is not above zero, or with VALID padding the number of windows would be negative.
        EnsureError: another number is not above zero.
    """
    if stride <= 0 or dilation <= 0 or filter <= 0 or size <= 0:
        ensure(stride > 0, f"stride_{name} is {stride} and must be above zero.")
        ensure(dilation > 0, f"dilation_{name}_factor is {dilation} and must be above zero.")
        ensure(filter > 0, f"the filter's {name} is {filter} and must be above zero.")
        ensure_fits(False, f"the input's {name} is {size} and must be above zero.")
    span = (filter - 1) * dilation + 1
    out = windows_in(size, filter, stride, padding, dilation)
    ensure_fits(
        out >= 0,
        lambda: (
            f"the filter covers {span} along the {name} ({filter} taps, dilation {dilation}), the input has only {size}, "
            "and the padding is VALID."
        ),
    )
    return Axis(size, filter, stride, dilation, out, padding_before(out, size, filter, stride, dilation))
