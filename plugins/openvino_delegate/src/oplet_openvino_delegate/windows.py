"""Window padding of convolutions and pools: LiteRT's SAME and VALID as explicit rows and columns."""

from __future__ import annotations

from collections.abc import Sequence

from oplet.kernels.windows import padding_around
from oplet.schema.enums import Padding


def padding_of(
    padding: Padding, sizes: Sequence[int], taps: Sequence[int], strides: Sequence[int], dilations: Sequence[int] = (1, 1, 1)
) -> tuple[list[int], list[int]]:
    """Return the padding at the beginning and at the end of each axis; if SAME padding is odd, the end gets the larger part."""
    around = [padding_around(*numbers[:3], padding, numbers[3]) for numbers in zip(sizes, taps, strides, dilations)]
    return [before for before, _ in around], [behind for _, behind in around]


def refuses_window(padding: Padding, *numbers: int) -> str:
    """Return why window parameters (strides, sizes, dilations) are invalid: one is below 1; "" if they are valid."""
    if padding not in (Padding.SAME, Padding.VALID):
        return f"it has no padding {padding!r}"
    return "" if min(numbers) > 0 else f"one of its strides, sizes or dilations is below 1: {list(numbers)}"
