"""SPARSE_TO_DENSE: values at given positions, a default value everywhere else. Numerics: tflite/kernels/sparse_to_dense.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_builtin_ops.shaping.positions import row_finder

_INDICES = (TensorType.INT32, TensorType.INT64)
_VALUES = (*_INDICES, TensorType.INT8, TensorType.UINT8, TensorType.FLOAT32)


def _shapes(node: Node) -> list[Shape]:
    return [tuple(read_ints(node.inputs[1]))]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 4)
    indices, shape, values, default = node.inputs
    ensure(indices.ndim < 3, f"{indices} must be one position, a vector of positions, or a matrix with a position a row.")
    ensure(shape.ndim == 1, f"{shape} must be a vector, the output's shape.")
    ensure(values.ndim < 2, f"{values} must be one value or a vector of them.")
    ensure(default.size == 1, f"the default {default} must be one value, not {default.size}.")
    for tensor in (indices, shape):
        ensure_type(tensor, *_INDICES)
    ensure_type(values, *_VALUES)
    ensure_same_type(values, default)
    depth = indices.shape[1] if indices.ndim == 2 else 1
    count = indices.shape[0] if indices.ndim else 1
    ensure(shape.size == depth, f"{indices} holds positions of {depth} axes, the output's shape {shape} names {shape.size}.")
    ensure(depth <= 4, f"{indices} holds positions of {depth} axes; this op takes at most 4.")
    ensure(values.ndim == 0 or values.size == count, f"{values} must be one value, or one for each of {count} positions.")
    context.set_type(node.outputs[0], values.type)
    defer_or_resize(context, node, [shape], _shapes)


def _bind(node: Node) -> Thunk:
    values, default = (tensor.data for tensor in node.inputs[2:])
    output = node.outputs[0].data
    target, background = output.reshape(-1), default.reshape(())
    indices = node.inputs[0]
    places = row_finder(indices, indices.shape[1] if indices.ndim == 2 else 1, output.shape)

    def run() -> None:
        target[...] = background
        # Of several values for one position the last one counts.
        target[places()] = values

    return run


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:2])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_VALUES)
