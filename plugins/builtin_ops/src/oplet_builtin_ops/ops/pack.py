"""PACK: tensors of one shape stacked along a new axis. Numerics: tflite/kernels/pack.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk, copies
from oplet.kernels.axes import along, resolve_axis
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.options import PackOptions
from oplet_builtin_ops.operands import ensure_same_quantization

_TYPES = (
    TensorType.FLOAT32, TensorType.UINT8, TensorType.UINT32, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64,
)  # fmt: skip


def prepare(context: Context, node: Node) -> None:
    options = node.options(PackOptions)
    ensure(options.values_count > 0, f"values_count is {options.values_count} and must be above zero.")
    ensure_operands(node, options.values_count)
    first, output = node.inputs[0], node.outputs[0]
    ensure_type(first, *_TYPES)
    axis = resolve_axis(options.axis, first.ndim + 1)
    for tensor in node.inputs:
        ensure_same_type(tensor, output)
        if tensor.shape != first.shape:
            ensure(False, f"{tensor} and {first} must have the same shape to be packed.")
        ensure_same_quantization(tensor, output)
    context.resize_tensor(output, (*first.shape[:axis], len(node.inputs), *first.shape[axis:]))


def bind(context: Context, node: Node) -> Thunk:
    output = node.outputs[0].data
    axis = resolve_axis(node.options(PackOptions).axis, output.ndim)
    # The trailing ellipsis gives a view also where an index alone would give a scalar.
    pairs = [(output[along(axis, i, ...)], tensor.data) for i, tensor in enumerate(node.inputs)]
    return copies(pairs)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=_TYPES,
)
