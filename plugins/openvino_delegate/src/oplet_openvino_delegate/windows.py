"""Where the windows of convolutions and pools lie: LiteRT's SAME and VALID as numbers of padded rows and columns."""

from __future__ import annotations

from collections.abc import Sequence

from oplet.schema.enums import Padding


def padding_of(
    padding: Padding, sizes: Sequence[int], taps: Sequence[int], strides: Sequence[int], dilations: Sequence[int] = (1, 1, 1)
) -> tuple[list[int], list[int]]:
    """Rows and columns to add before and behind the image; SAME puts an odd one behind."""
    begin, end = [], []
    for size, tap, stride, dilation in zip(sizes, taps, strides, dilations):
        out = -(-size // stride)
        missing = max((out - 1) * stride + (tap - 1) * dilation + 1 - size, 0) if padding is Padding.SAME else 0
        begin.append(missing // 2)
        end.append(missing - missing // 2)
    return begin, end


def refuses_window(padding: Padding, *numbers: int) -> str:
    """Why a window is none: strides, sizes and dilations are at least 1."""
    if padding not in (Padding.SAME, Padding.VALID):
        return f"it has no padding {padding!r}"
    return "" if min(numbers) > 0 else f"one of its strides, sizes or dilations is below 1: {list(numbers)}"
