"""DYNAMIC_UPDATE_SLICE: a tensor with a block of it replaced. Numerics: tflite/kernels/dynamic_update_slice.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.operands import all_types_but
from oplet_builtin_ops.shaping.slice_updates import ensure_update_fits, update_thunk

_REFUSED = (TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT, TensorType.INT2, TensorType.UINT4)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    operand, update, starts = node.inputs
    ensure(operand.type not in _REFUSED, f"{operand} is of type {operand.type.name}, which this op does not take.")
    ensure(operand.ndim <= 8, f"{operand} has {operand.ndim} dimensions; this op takes 8 at most.")
    ensure_type(starts, TensorType.INT32, TensorType.INT64)
    ensure(
        starts.shape == (operand.ndim,),
        f"the start indices {starts} must have shape [{operand.ndim}], one for each dimension of {operand}.",
    )
    ensure_update_fits(operand, update)
    context.set_type(node.outputs[0], operand.type)
    context.resize_tensor(node.outputs[0], operand.shape)
    node.in_place = [operand]


def bind(context: Context, node: Node) -> Thunk:
    operand, update, starts = (tensor.data for tensor in node.inputs)
    return update_thunk(operand, update, [starts], node.outputs[0].data)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=all_types_but(*_REFUSED))
