"""Broadcasting of two operands."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from oplet.kernels.arrays import Shape
from oplet.ops.context import ensure
from oplet.ops.tensor import Tensor

__all__ = ["broadcast_shape"]


def broadcast_shape(a: Tensor, b: Tensor) -> Shape:
    """Return the shape of the elementwise result of two tensors: dimensions are equal, or one of them is 1 or missing.

    Raises:
        EnsureError: the shapes cannot be broadcast.
    """
    shape = a.shape if a.shape == b.shape else _broadcast(a.shape, b.shape)
    if shape is None:
        ensure(False, f"Given shapes, {list(a.shape)} and {list(b.shape)}, are not broadcastable: {a} with {b}.")
    return cast(Shape, shape)


@lru_cache(maxsize=1024)
def _broadcast(a: Shape, b: Shape) -> Shape | None:
    """Return the shape to which two shapes broadcast; None if they cannot."""
    rank = max(len(a), len(b))
    first, second = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if not all(m == n or 1 in (m, n) for m, n in zip(first, second)):
        return None
    return tuple(n if m == 1 else m for m, n in zip(first, second))
