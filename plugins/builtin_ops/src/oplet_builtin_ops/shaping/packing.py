"""PACK: tensors of one shape stacked along a new axis; UNPACK: the slices of a tensor along an axis, each without that axis.

Numerics: tflite/kernels/pack.cc, tflite/kernels/unpack.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk, copies
from oplet.kernels.axes import along, resolve_axis
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.options import PackOptions, UnpackOptions
from oplet_builtin_ops.arithmetic.quantization import ensure_same_quantization

_PACKED = (
    TensorType.FLOAT32, TensorType.UINT8, TensorType.UINT32, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64,
)  # fmt: skip


def _prepare_pack(context: Context, node: Node) -> None:
    options = node.options(PackOptions)
    ensure(options.values_count > 0, f"values_count is {options.values_count} and must be above zero.")
    ensure_operands(node, options.values_count)
    first, output = node.inputs[0], node.outputs[0]
    ensure_type(first, *_PACKED)
    axis = resolve_axis(options.axis, first.ndim + 1)
    for tensor in node.inputs:
        ensure_same_type(tensor, output)
        if tensor.shape != first.shape:
            ensure(False, f"{tensor} and {first} must have the same shape to be packed.")
        ensure_same_quantization(tensor, output)
    context.resize_tensor(output, (*first.shape[:axis], len(node.inputs), *first.shape[axis:]))


def _bind_pack(context: Context, node: Node) -> Thunk:
    output = node.outputs[0].data
    axis = resolve_axis(node.options(PackOptions).axis, output.ndim)
    # The trailing ellipsis gives a view also where an index alone would give a scalar.
    pairs = [(output[along(axis, i, ...)], tensor.data) for i, tensor in enumerate(node.inputs)]
    return copies(pairs)


_UNPACKED = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16,
    TensorType.INT32, TensorType.BOOL,
)  # fmt: skip


def _prepare_unpack(context: Context, node: Node) -> None:
    options = node.options(UnpackOptions)
    ensure(options.num >= 0, f"num is {options.num} and must not be negative.")
    ensure_operands(node, 1, options.num)
    source = node.inputs[0]
    ensure_type(source, *_UNPACKED)
    axis = resolve_axis(options.axis, source.ndim)
    ensure(source.size > 0, f"{source} has no elements to unpack.")
    ensure(source.shape[axis] == options.num, f"num is {options.num}, but axis {axis} of {source} is {source.shape[axis]}.")
    for output in node.outputs:
        ensure_same_type(source, output)
        ensure_same_quantization(source, output)
        context.resize_tensor(output, source.shape[:axis] + source.shape[axis + 1 :])


def _bind_unpack(context: Context, node: Node) -> Thunk:
    source = node.inputs[0].data
    axis = resolve_axis(node.options(UnpackOptions).axis, source.ndim)
    # The trailing ellipsis gives a view where an index alone would give a scalar.
    pairs = [(output.data, source[along(axis, i, ...)]) for i, output in enumerate(node.outputs)]
    return copies(pairs)


PACK = Registration(prepare=_prepare_pack, bind=_bind_pack, pure=True, types=_PACKED)
UNPACK = Registration(prepare=_prepare_unpack, bind=_bind_unpack, pure=True, types=_UNPACKED)
