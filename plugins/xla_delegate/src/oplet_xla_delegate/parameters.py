"""Constant parameters of operators: axes, shapes, widths."""

from __future__ import annotations

from collections.abc import Sequence

from oplet import Tensor

__all__ = ["axes_of", "integers"]


def integers(tensor: Tensor) -> list[int]:
    """Return the values of a constant integer tensor."""
    values: list[int] = tensor.data.ravel().tolist()
    return values


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Return the axes with negative ones counted from the end.

    Raises:
        LookupError: an axis is out of range.
    """
    if not all(-rank <= axis < rank for axis in axes):
        raise LookupError(f"the axes {list(axes)} are not all in a tensor of {rank} dimensions")
    return [axis % rank for axis in axes]
