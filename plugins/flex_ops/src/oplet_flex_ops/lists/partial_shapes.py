"""Shapes with unknown dimensions or rank: TensorFlow's PartialTensorShape."""

from __future__ import annotations

from oplet import Tensor, ensure
from oplet.kernels.axes import read_ints
from oplet.kernels.options import Shape

__all__ = ["is_defined", "merged", "read_partial_shape", "shown", "without_first"]

#: Dimensions that TensorFlow's shapes have at most.
_MOST_DIMENSIONS = 254


def read_partial_shape(tensor: Tensor) -> Shape:
    """Read a partial shape from an INT32 or INT64 tensor: -1 is an unknown dimension, a scalar -1 an unknown rank.

    Raises:
        EnsureError: a dimension is below -1, a scalar is another number, or there are too many dimensions.
    """
    if not tensor.ndim:
        ensure(tensor.data.item() == -1, lambda: f"the element shape {tensor} is the number {tensor.data}; only -1 stands alone.")
        return None
    ensure(tensor.ndim == 1 and tensor.size <= _MOST_DIMENSIONS, lambda: f"the element shape {tensor} must be a vector of sizes.")
    sizes = tuple(read_ints(tensor))
    ensure(
        all(size >= -1 for size in sizes),
        lambda: f"the element shape {shown(sizes)} has a size below -1, which is an unknown one.",
    )
    return sizes


def merged(a: Shape, b: Shape, what: str) -> Shape:
    """Merge two partial shapes into the most specific one; raise if they conflict.

    Args:
        what: what the shapes belong to in the message, "the elements of the list".

    Raises:
        EnsureError: the shapes conflict.
    """
    if a == b or b is None:
        return a
    if a is None:
        return b
    ensure(
        len(a) == len(b) and all(p in (q, -1) or q == -1 for p, q in zip(a, b)),
        lambda: f"{what} cannot be of shape {shown(a)} and of shape {shown(b)}.",
    )
    return tuple(q if p == -1 else p for p, q in zip(a, b))


def without_first(shape: Shape) -> Shape:
    """Return the shape without its first dimension."""
    return shape if shape is None else shape[1:]


def is_defined(shape: Shape) -> bool:
    """Return whether rank and all dimensions are known."""
    return shape is not None and -1 not in shape


def shown(shape: Shape) -> str:
    """Format the shape for error messages: "[2, ?]"."""
    return "of unknown rank" if shape is None else f"[{', '.join('?' if size == -1 else str(size) for size in shape)}]"
