"""UNPACK: the slices of a tensor along an axis, each without that axis. Numerics: tflite/kernels/unpack.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk, copies
from oplet.kernels.axes import along, resolve_axis
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.options import UnpackOptions
from oplet_builtin_ops.operands import ensure_same_quantization

_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16,
    TensorType.INT32, TensorType.BOOL,
)  # fmt: skip


def prepare(context: Context, node: Node) -> None:
    options = node.options(UnpackOptions)
    ensure(options.num >= 0, f"num is {options.num} and must not be negative.")
    ensure_operands(node, 1, options.num)
    source = node.inputs[0]
    ensure_type(source, *_TYPES)
    axis = resolve_axis(options.axis, source.ndim)
    ensure(source.size > 0, f"{source} has no elements to unpack.")
    ensure(source.shape[axis] == options.num, f"num is {options.num}, but axis {axis} of {source} is {source.shape[axis]}.")
    for output in node.outputs:
        ensure_same_type(source, output)
        ensure_same_quantization(source, output)
        context.resize_tensor(output, source.shape[:axis] + source.shape[axis + 1 :])


def bind(context: Context, node: Node) -> Thunk:
    source = node.inputs[0].data
    axis = resolve_axis(node.options(UnpackOptions).axis, source.ndim)
    # The trailing ellipsis gives a view where an index alone would give a scalar.
    pairs = [(output.data, source[along(axis, i, ...)]) for i, output in enumerate(node.outputs)]
    return copies(pairs)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=_TYPES,
)
