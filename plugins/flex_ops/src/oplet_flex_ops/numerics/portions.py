"""Large arrays in portions, so that what is made of one besides the output stays small, and the clock is looked at between them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from oplet import checkpoint
from oplet.kernels.arrays import Shape

__all__ = ["PORTION", "portions"]

#: The elements of a portion.
PORTION = 1 << 18


def portions(shape: Shape, most: int = PORTION) -> Iterator[tuple[slice, ...]]:
    """Yield slices that divide an array of this shape, in order, into contiguous portions of about `most` elements, or of one."""
    inner = prod(shape[1:])
    if not shape:
        yield ()
    elif inner > most:
        for first in range(shape[0]):
            for rest in portions(shape[1:], most):
                yield slice(first, first + 1), *rest
    elif inner:
        step = max(1, most // inner)
        for first in range(0, shape[0], step):
            checkpoint()
            yield slice(first, min(first + step, shape[0])), *[slice(0, size) for size in shape[1:]]
