"""Axes of a tensor, and the sizes, axes and paddings that arrive as values of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oplet.ops.context import ensure
from oplet.ops.tensor import Tensor

__all__ = ["along", "ensure_few", "read_int", "read_ints", "resolve_axes", "resolve_axis"]


def resolve_axis(axis: int, rank: int, what: str = "axis") -> int:
    """The axis counted from the front; a negative one counts from the back.

    Raises:
        EnsureError: there is no such axis.
    """
    if not -rank <= axis < rank:
        ensure(False, f"{what} is {axis}, which a tensor of rank {rank} does not have.")
    return axis + rank if axis < 0 else axis


def resolve_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Several axes, ascending, each once; of a scalar there are none to resolve, whatever is asked for."""
    if rank == 0:
        return ()
    return tuple(sorted({resolve_axis(axis, rank) for axis in axes}))


def along(axis: int, *where: Any) -> tuple[Any, ...]:
    """The index that means `where` on one axis, and everything on those before it."""
    return (slice(None),) * axis + where


#: Sizes, axes or paddings that one tensor may hold: more than any node has dimensions or results.
_MOST_INTS = 1 << 16


def ensure_few(tensor: Tensor) -> None:
    """Refuse sizes, axes or paddings by the million before a list is made of them: no node has so many dimensions.

    Raises:
        KernelError: there are more than 65536.
    """
    ensure(
        tensor.size <= _MOST_INTS,
        lambda: f"{tensor} holds {tensor.size} values; it may hold {_MOST_INTS}, as they are sizes or axes.",
    )


def read_ints(tensor: Tensor) -> list[int]:
    """The values of an integer tensor that holds sizes, axes or paddings, flat, as Python's integers."""
    ensure_few(tensor)
    values: list[int] = tensor.data.ravel().tolist()
    return values


def read_int(tensor: Tensor) -> int:
    """The only value of an integer tensor."""
    ensure(tensor.size == 1, lambda: f"{tensor} must hold exactly one value, not {tensor.size}.")
    return read_ints(tensor)[0]
