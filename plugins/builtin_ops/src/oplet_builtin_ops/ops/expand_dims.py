"""EXPAND_DIMS: insert a dimension of 1 before `axis`. Numerics: tflite/kernels/expand_dims.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Shape, Thunk
from oplet.kernels.axes import read_int, resolve_axis
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_builtin_ops.arithmetic.quantization import ensure_same_quantization
from oplet_builtin_ops.operands import take_type
from oplet_builtin_ops.ops.reshape import bind_reshaped


def _shapes(node: Node) -> list[Shape]:
    shape = node.inputs[0].shape
    axis = resolve_axis(read_int(node.inputs[1]), len(shape) + 1)
    return [(*shape[:axis], 1, *shape[axis:])]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, axis = node.inputs
    take_type(node.outputs[0], source)
    ensure_same_quantization(source, node.outputs[0])
    ensure_type(axis, TensorType.INT32, TensorType.INT64)
    defer_or_resize(context, node, [axis], _shapes)
    node.in_place = [source]


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, bind_reshaped, node.inputs[1:])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
