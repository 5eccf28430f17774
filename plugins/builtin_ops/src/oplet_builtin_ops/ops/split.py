"""SPLIT: `num_splits` equal pieces along an axis. Numerics: tflite/kernels/split.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk, copies
from oplet.kernels.axes import along, read_int, resolve_axis
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet.schema.options import SplitOptions
from oplet_builtin_ops.operands import take_type

_TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
)


def _shapes(node: Node) -> list[Shape]:
    source, count = node.inputs[1], len(node.outputs)
    axis = resolve_axis(read_int(node.inputs[0]), source.ndim)
    length = source.shape[axis]
    ensure(length % count == 0, f"axis {axis} of {source} has length {length}, which {count} pieces do not divide.")
    return [(*source.shape[:axis], length // count, *source.shape[axis + 1 :])] * count


def prepare(context: Context, node: Node) -> None:
    count = node.options(SplitOptions).num_splits
    ensure(count > 0, f"num_splits is {count} and must be above zero.")
    ensure_operands(node, 2, count)
    axis, source = node.inputs
    ensure_type(axis, TensorType.INT32)
    ensure_type(source, *_TYPES)
    for output in node.outputs:
        take_type(output, source)
    defer_or_resize(context, node, [axis], _shapes)


def _bind(node: Node) -> Thunk:
    source = node.inputs[1].data
    axis = resolve_axis(read_int(node.inputs[0]), source.ndim)
    step = source.shape[axis] // len(node.outputs)
    pairs = [(output.data, source[along(axis, slice(i * step, (i + 1) * step))]) for i, output in enumerate(node.outputs)]
    return copies(pairs)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[:1])


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=_TYPES,
)
