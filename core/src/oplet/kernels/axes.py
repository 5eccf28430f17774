"""Normalization of axes, and readers of tensors that hold sizes, axes or paddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oplet.ops.context import ensure
from oplet.ops.tensor import Tensor

__all__ = ["along", "ensure_few", "read_int", "read_ints", "resolve_axes", "resolve_axis"]


def resolve_axis(axis: int, rank: int, what: str = "axis") -> int:
    """Return the axis as a number from 0 to rank - 1; a negative axis counts from the back.

    Args:
        what: the axis's name in messages.

    Raises:
        EnsureError: there is no such axis.
    """
    if not -rank <= axis < rank:
        ensure(False, f"{what} is {axis}, which a tensor of rank {rank} does not have.")
    return axis + rank if axis < 0 else axis


def resolve_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the axes as distinct ascending numbers from 0 to rank - 1; none for a scalar, whatever the axes are.

    Raises:
        EnsureError: there is no such axis.
    """
    if rank == 0:
        return ()
    return tuple(sorted({resolve_axis(axis, rank) for axis in axes}))


def along(axis: int, *where: Any) -> tuple[Any, ...]:
    """Return the index expression that selects `where` on one axis (and those after it) and everything on the axes before."""
    return (slice(None),) * axis + where


#: The most sizes, axes or paddings in one tensor: more than any node has dimensions or results.
_MOST_INTS = 1 << 16


def ensure_few(tensor: Tensor) -> None:
    """Refuse a tensor of sizes, axes or paddings with more than 65536 values, before a list is made of them.

    Raises:
        EnsureError: the tensor has more values.
    """
    ensure(
        tensor.size <= _MOST_INTS,
        lambda: f"{tensor} holds {tensor.size} values; it may hold {_MOST_INTS}, as they are sizes or axes.",
    )


def read_ints(tensor: Tensor) -> list[int]:
    """Return the values of an integer tensor (sizes, axes or paddings), flattened, as a list of int.

    Raises:
        EnsureError: the tensor has more than 65536 values.
    """
    ensure_few(tensor)
    values: list[int] = tensor.data.ravel().tolist()
    return values


def read_int(tensor: Tensor) -> int:
    """Return the only value of an integer tensor.

    Raises:
        EnsureError: the tensor does not have exactly one value.
    """
    ensure(tensor.size == 1, lambda: f"{tensor} must hold exactly one value, not {tensor.size}.")
    return read_ints(tensor)[0]
