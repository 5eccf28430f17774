"""STABLEHLO_SELECT: values of one tensor where a condition is true, of another one elsewhere."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_shape, ensure_same_type
from oplet_builtin_ops.layers.program import run_calls
from oplet_builtin_ops.stablehlo import VALUES, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    condition, on_true, on_false = node.inputs
    ensure_type(condition, TensorType.BOOL)
    ensure_values(on_true)
    ensure_same_type(on_true, on_false)
    ensure_same_type(on_true, node.outputs[0])
    ensure_same_shape(on_true, on_false)
    ensure(condition.shape in ((), on_true.shape), f"the condition {condition} must be a scalar or have the shape of {on_true}.")
    context.resize_tensor(node.outputs[0], on_true.shape)


def bind(context: Context, node: Node) -> Thunk:
    condition, on_true, on_false = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data
    return run_calls([(np.copyto, (output, on_false)), (np.copyto, (output, on_true, "no", condition))])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
