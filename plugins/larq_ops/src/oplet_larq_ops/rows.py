"""Tensors as rows of their last dimension, which are worked on in blocks."""

from __future__ import annotations

from collections.abc import Iterator

from oplet import Tensor, ensure

__all__ = ["blocks", "ensure_rows"]

#: Values that are worked on at once, where what is worked out in between takes memory.
AT_ONCE = 1 << 16


def ensure_rows(tensor: Tensor) -> None:
    """Check that the tensor has a last dimension.

    Raises:
        EnsureError: the tensor is a scalar.
    """
    ensure(tensor.ndim > 0, lambda: f"{tensor} must have a last dimension, whose values share words.")


def blocks(rows: int, size: int) -> Iterator[slice]:
    """Yield slices that divide `rows` rows of `size` values into blocks of about `AT_ONCE` values."""
    step = max(1, AT_ONCE // max(1, size))
    return (slice(start, start + step) for start in range(0, rows, step))
