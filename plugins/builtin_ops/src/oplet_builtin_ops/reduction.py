"""What the reductions share: which axes go, and what shape is left. Numerics: tflite/kernels/reduce.cc"""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet.schema.options import ReducerOptions
from oplet_builtin_ops.shapes import (
    Shape,
    Thunk,
    defer_or_resize,
    defer_or_run,
    ensure_operands,
    ensure_same_type,
    read_ints,
    resolve_axes,
)

__all__ = ["bind_reduction", "kept_shape", "prepare_reduction", "reduced_axes"]


def reduced_axes(node: Node) -> tuple[int, ...]:
    """The axes that are reduced, ascending, each once."""
    return resolve_axes(read_ints(node.inputs[1]), node.inputs[0].ndim)


def kept_shape(node: Node) -> Shape:
    """The output's shape with every reduced dimension kept as 1."""
    axes = reduced_axes(node)
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(node.inputs[0].shape))


def _shapes(node: Node) -> list[Shape]:
    kept = kept_shape(node)
    if node.options(ReducerOptions).keep_dims:
        return [kept]
    axes = reduced_axes(node)
    return [tuple(dim for axis, dim in enumerate(kept) if axis not in axes)]


def prepare_reduction(context: Context, node: Node, *types: TensorType) -> None:
    """Check a reduction of tensors of one of `types` and size its output, if the axes are known by now."""
    ensure_operands(node, 2)
    source, axes = node.inputs
    output = node.outputs[0]
    ensure_type(source, *types)
    ensure_same_type(source, output)
    ensure_type(axes, TensorType.INT32)
    if source.type == TensorType.INT16:
        for tensor in (source, output):
            ensure(tensor.zero_point == 0, f"{tensor} has zero point {tensor.zero_point}; int16 takes 0 here.")
    defer_or_resize(context, node, [axes], _shapes)


def bind_reduction(context: Context, node: Node, bind: Callable[[Node], Thunk]) -> Thunk:
    """The thunk of a reduction; `bind` binds the node once its output has its shape."""
    return defer_or_run(context, node, _shapes, bind)
