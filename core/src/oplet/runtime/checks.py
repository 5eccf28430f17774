"""What kernels may ask for: shapes and temporaries."""

from __future__ import annotations

from collections.abc import Sequence

from oplet.ops.context import EnsureError, ensure
from oplet.ops.tensor import Allocation, Shape, Tensor

__all__ = ["checked_shape", "ensure_temporary"]

#: More elements than any address space holds.
_LARGEST = 2**60


def ensure_temporary(allocation: Allocation) -> None:
    """Refuse temporaries of kinds that are the runtime's own.

    Raises:
        EnsureError: it is such a kind.
    """
    possible = (Allocation.ARENA, Allocation.PERSISTENT, Allocation.DYNAMIC)
    ensure(
        allocation in possible,
        f"a temporary is of allocation type {allocation.name}; ARENA, PERSISTENT and DYNAMIC are possible.",
    )


def checked_shape(tensor: Tensor, shape: Sequence[int]) -> Shape:
    """The shape as a tuple of ints, if the tensor can take it.

    Raises:
        EnsureError: a dimension is negative, or there would be more elements than can be addressed.
    """
    wanted = tuple(int(dim) for dim in shape)
    size = 1
    for dim in wanted:
        if dim < 0:
            raise EnsureError(f"{tensor} cannot take the shape {list(wanted)}: a dimension must not be negative.")
        size *= dim
    if size > _LARGEST:
        raise EnsureError(f"BytesRequired number of elements overflowed. {tensor} cannot take the shape {list(wanted)}.")
    return wanted
