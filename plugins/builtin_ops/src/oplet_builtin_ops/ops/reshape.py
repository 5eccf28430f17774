"""RESHAPE: the same values in another shape; a dimension of -1, or the only 0 of a constant shape, is computed from the others.

Numerics: tflite/kernels/reshape.cc, tflite/kernels/internal/reshape_utils.h
"""

from __future__ import annotations

from math import prod

from oplet import Context, Node, Registration, TensorType, ensure, ensure_fits
from oplet.kernels.arrays import Shape, Thunk, copier
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet.schema.options import ReshapeOptions

#: The most dimensions of a numpy array, far more than models have.
_MOST_DIMENSIONS = 64


def bind_reshaped(node: Node) -> Thunk:
    """Return a function that copies the first input's values, in order, into the output of another shape."""
    output = node.outputs[0].data
    return copier(output, node.inputs[0].data.reshape(output.shape))


def _shape_in_tensor(node: Node) -> bool:
    # LiteRT uses the options if the shape tensor is not a vector of int32.
    shape = node.optional_input(1)
    return shape is not None and shape.ndim == 1 and shape.type == TensorType.INT32


def _shapes(node: Node) -> list[Shape]:
    source = node.inputs[0]
    if _shape_in_tensor(node):
        wanted = read_ints(node.inputs[1])
    else:
        new_shape = node.options(ReshapeOptions).new_shape
        wanted = [] if new_shape is None or new_shape.tolist() == [0] else new_shape.tolist()  # [0] was written for a scalar's
    ensure(
        len(wanted) <= _MOST_DIMENSIONS, lambda: f"the new shape has {len(wanted)} dimensions; {_MOST_DIMENSIONS} are possible."
    )
    ensure(all(dim >= -1 for dim in wanted), lambda: f"the new shape {wanted} has a dimension below -1.")
    ensure(wanted.count(-1) <= 1, lambda: f"the new shape {wanted} has more than one -1.")
    judge = ensure_fits if 0 in wanted else ensure  # XNNPACK, which LiteRT asks first, prepares shapes without elements
    fixed = not _shape_in_tensor(node) or node.inputs[1].is_constant
    if fixed and source.size and wanted.count(0) == 1 and -1 not in wanted:
        wanted = [dim or -1 for dim in wanted]  # as in XNNPACK
    shape = tuple(wanted)
    if -1 in wanted:
        # Zeros are left out on both sides, so that [0, 3] can become [0, -1].
        known = prod(dim for dim in wanted if dim > 0)
        rest = 0 if source.size == 0 and 0 not in wanted else prod(dim for dim in source.shape if dim) // known
        shape = tuple(rest if dim == -1 else dim for dim in wanted)
    size = prod(shape)
    judge(
        size == source.size,
        lambda: f"{source} has {source.size} elements, the new shape {wanted} has {size}{_hint(node, size * fixed)}.",
    )
    return [shape]


def _hint(node: Node, size: int) -> str:
    """Return an error hint for a model exported with a fixed batch size that got another; "" if it does not apply, or for 0."""
    if not size or node.inputs[0].size % size:
        return ""
    return "; where a batch of another size is given, `oplet rewrite --batch N` (-1 for any) makes the model fit it"


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, optional=1)
    ensure_same_type(node.inputs[0], node.outputs[0])
    defer_or_resize(context, node, node.inputs[1:] if _shape_in_tensor(node) else [], _shapes)
    node.in_place = node.inputs[:1]


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, bind_reshaped, node.inputs[1:] if _shape_in_tensor(node) else [])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
