"""STABLEHLO_CLAMP: values clamped between two bounds, each a scalar or of the shape of the values."""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.fixed_point import clip
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly
from oplet_builtin_ops.stablehlo import FLOATS, INTEGERS, ensure_not_quantized


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    low, values, high = node.inputs
    output = node.outputs[0]
    ensure_type(values, *FLOATS, *INTEGERS)
    ensure_same_type(values, output)
    ensure_not_quantized(values, output)
    for bound in (low, high):
        ensure_same_type(values, bound)
        ensure(bound.shape in ((), values.shape), f"{bound} must be a scalar or have the shape of {values}.")
    context.resize_tensor(output, values.shape)


def bind(context: Context, node: Node) -> Thunk:
    low, values, high = (tensor.data for tensor in node.inputs)
    return quietly(clip, values, low, high, node.outputs[0].data)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*FLOATS, *INTEGERS))
