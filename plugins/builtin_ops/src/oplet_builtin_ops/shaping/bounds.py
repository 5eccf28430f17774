"""Range errors of indices that are known only at run time."""

from __future__ import annotations

from collections.abc import Sequence

from oplet import Tensor, ensure_fits

__all__ = ["box", "refuse_begin", "refuse_position"]


def refuse_position(position: int, length: int) -> None:
    """Raise the error for a gather index `position` outside its axis of `length` elements."""
    ensure_fits(False, f"position {position} is outside the axis gathered from, which has length {length}.")


def refuse_begin(source: Tensor, begins: Sequence[int], begin: int, dim: int) -> None:
    """Raise the error for an entry of `begin` that selects a single position outside an axis of length `dim`."""
    ensure_fits(False, f"begin {list(begins)} takes position {begin} of an axis of length {dim} of {source}.")


def box(source: Tensor, begins: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Check a slice's begins and sizes, and return the slice of each axis; a size of -1 reaches to the end."""
    found = []
    for axis, (begin, size, dim) in enumerate(zip(begins, sizes, source.shape)):
        end = dim if size == -1 else begin + size
        if size < -1 or not 0 <= begin <= end <= dim:
            ensure_fits(
                False, f"begin {begins} and size {sizes} leave {source}: axis {axis} takes {size} from {begin} on and has {dim}."
            )
        found.append(slice(begin, end))
    return tuple(found)
