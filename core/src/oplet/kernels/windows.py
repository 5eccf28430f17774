"""Windows that slide along an axis: how many there are and where the padding lies, by the rules SAME and VALID.

A window has `filter` taps, `dilation` apart, and moves on by `stride`. SAME has a window for each stride and puts an odd row of padding
behind the map; VALID has those windows that fit. Source: tflite/kernels/padding.h

    >>> from oplet.schema.enums import Padding
    >>> window_axis("height", Padding.SAME, size=5, filter=3, stride=2)
    Axis(size=5, filter=3, stride=2, dilation=1, out=3, before=1)
    >>> windows_in(5, filter=3, stride=2, padding=Padding.VALID)
    2
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from oplet.ops.context import ensure
from oplet.schema.enums import Padding

__all__ = ["Axis", "Windows2D", "padding_around", "padding_before", "transposed_axis", "window_axis", "windows_in"]


def windows_in(size: int, filter: int, stride: int, padding: Padding, dilation: int = 1) -> int:
    """How many windows an axis has; where less than a stride is missing for the first one there are none, where more, fewer than 0.

    All numbers must be above zero; `window_axis` checks them.
    """
    if padding == Padding.SAME:
        return -(-size // stride)
    room = size + stride - (filter - 1) * dilation - 1
    return room // stride if room >= 0 else -(-room // stride)  # rounded towards zero, as C++ divides


def padding_before(out: int, size: int, filter: int, stride: int, dilation: int = 1) -> int:
    """The padding that comes first: half of what `out` windows reach beyond an axis of `size`, rounded down."""
    return max((out - 1) * stride + (filter - 1) * dilation + 1 - size, 0) // 2


def padding_around(size: int, filter: int, stride: int, padding: Padding, dilation: int = 1) -> tuple[int, int]:
    """The padding before and behind an axis; none where it is VALID.

    >>> padding_around(4, filter=2, stride=1, padding=Padding.SAME)
    (0, 1)
    """
    if padding != Padding.SAME:
        return 0, 0
    missing = max((-(-size // stride) - 1) * stride + (filter - 1) * dilation + 1 - size, 0)
    return missing // 2, missing - missing // 2


class Axis(NamedTuple):
    """One of the two axes that a window slides along.

    Attributes:
        size: of the map.
        filter: taps of the window.
        stride: steps between windows.
        dilation: steps between taps.
        out: how many windows there are.
        before: how much padding comes first.
    """

    size: int
    filter: int
    stride: int
    dilation: int
    out: int
    before: int

    @property
    def span(self) -> int:
        """What a window covers, from its first tap to its last."""
        return (self.filter - 1) * self.dilation + 1

    @property
    def padded(self) -> int:
        """The size with the padding that some window reads."""
        return max(self.before + self.size, (self.out - 1) * self.stride + (self.filter - 1) * self.dilation + 1)


class Windows2D(NamedTuple):
    """All windows over a batch of maps of shape (batch, height, width, channels).

    Attributes:
        batch: number of maps.
        height: the windows along the height.
        width: the windows along the width.
        channels: of the map.

    Example:
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
        """How many windows there are (not what a tuple counts)."""
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
    """The windows along one axis, by TensorFlow's SAME and VALID rules.

    Raises:
        EnsureError: a number makes no sense, or the window does not fit into the map.
    """
    if stride <= 0 or dilation <= 0 or filter <= 0 or size <= 0:
        ensure(stride > 0, f"stride_{name} is {stride} and must be above zero.")
        ensure(dilation > 0, f"dilation_{name}_factor is {dilation} and must be above zero.")
        ensure(filter > 0, f"the filter's {name} is {filter} and must be above zero.")
        ensure(False, f"the input's {name} is {size} and must be above zero.")
    span = (filter - 1) * dilation + 1
    out = windows_in(size, filter, stride, padding, dilation)
    ensure(
        out >= 0,
        lambda: (
            f"the filter covers {span} along the {name} ({filter} taps, dilation {dilation}), the input has only {size}, "
            "and the padding is VALID."
        ),
    )
    return Axis(size, filter, stride, dilation, out, padding_before(out, size, filter, stride, dilation))


def transposed_axis(name: str, padding: Padding, size: int, filter: int, stride: int, inputs: int, dilation: int = 1) -> Axis:
    """The windows of the convolution whose transpose gives `size` values from `inputs` along one axis.

    SAME padding lies where the convolution has it, and says how many inputs there are. With VALID padding there is none: each input
    has its window, and what windows write beyond `size` is cut off.

    Raises:
        EnsureError: a number makes no sense.
    """
    if padding == Padding.SAME or size <= 0 or filter <= 0 or stride <= 0 or dilation <= 0:
        return window_axis(name, padding, size, filter, stride, dilation)
    return Axis(size, filter, stride, dilation, inputs, 0)
