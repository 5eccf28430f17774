"""FILL: one value in a given shape. Numerics: tflite/kernels/fill.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk, copier
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import PLAIN_TYPES, ensure_operands, ensure_plain
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_builtin_ops.arithmetic.quantization import ensure_same_quantization
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero


def _shapes(node: Node) -> list[Shape]:
    dims = read_ints(node.inputs[0])
    ensure(all(dim >= 0 for dim in dims), f"Fill dimensions must be >= 0, they are {dims}.")
    return [tuple(dims)]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    dims, value = node.inputs
    output = node.outputs[0]
    ensure_type(dims, TensorType.INT32, TensorType.INT64)
    ensure(dims.ndim == 1, f"{dims} must be a vector, the output's shape.")
    ensure(value.ndim == 0, f"{value} must be a scalar.")
    ensure_plain(value, strings=True)
    context.set_type(output, value.type)
    ensure_same_quantization(value, output)
    if value.type == TensorType.INT16:
        ensure_zero_point_is_zero(value)
    defer_or_resize(context, node, [dims], _shapes)


def _bind(node: Node) -> Thunk:
    return copier(node.outputs[0].data, node.inputs[1].data)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[:1])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*PLAIN_TYPES, TensorType.STRING))
