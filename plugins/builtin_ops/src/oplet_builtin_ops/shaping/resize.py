"""Shared parts of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: checks, and the output's size."""

from __future__ import annotations

from oplet import Context, Node, TensorType, ensure, ensure_fits, ensure_type
from oplet.kernels.arrays import Shape
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize
from oplet_builtin_ops.operands import take_type

__all__ = ["prepare_resize", "resized_shapes"]


def resized_shapes(node: Node) -> list[Shape]:
    """Return the output's shape from the present value of the size input.

    Raises:
        EnsureError: a dimension is not above zero.
    """
    source, size = node.inputs
    ensure_fits(source.shape[1] > 0 and source.shape[2] > 0, lambda: f"{source} has no pixels to make others from.")
    height, width = read_ints(size)
    ensure(height > 0 and width > 0, lambda: f"{size} asks for {height} x {width}; both must be above zero.")
    return [(source.shape[0], height, width, source.shape[3])]


def prepare_resize(context: Context, node: Node, *types: TensorType) -> None:
    """Check a resize node whose map has one of `types`; set its output shape if the size is constant."""
    ensure_operands(node, 2)
    source, size = node.inputs
    ensure_type(source, *types)
    take_type(node.outputs[0], source)
    ensure(source.ndim == 4, lambda: f"{source} must have 4 dimensions.")
    ensure_type(size, TensorType.INT32)
    ensure(size.shape == (2,), lambda: f"{size} must be a vector of two, height and width.")
    defer_or_resize(context, node, [size], resized_shapes)
