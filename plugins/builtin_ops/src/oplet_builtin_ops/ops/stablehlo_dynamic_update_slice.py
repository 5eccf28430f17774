"""STABLEHLO_DYNAMIC_UPDATE_SLICE: a tensor with a block replaced, at a position that is an input."""

from __future__ import annotations

from oplet import Context, Node, Registration
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet_builtin_ops.shaping.slice_updates import ensure_scalar_starts, ensure_update_fits, update_thunk
from oplet_builtin_ops.stablehlo import VALUES, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, max(2, len(node.inputs)))
    operand, update, *starts = node.inputs
    ensure_values(operand)
    ensure_same_type(operand, node.outputs[0])
    ensure_scalar_starts(operand, starts)
    ensure_update_fits(operand, update)
    context.resize_tensor(node.outputs[0], operand.shape)
    node.in_place = [operand]


def bind(context: Context, node: Node) -> Thunk:
    operand, update, *starts = (tensor.data for tensor in node.inputs)
    return update_thunk(operand, update, starts, node.outputs[0].data)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
