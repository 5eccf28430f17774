"""SELECT and SELECT_V2, compiled: for so few bytes that a numpy call would take longer; numbers are copied as raw bits."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType
from oplet_builtin_ops.elementwise import selection as builtin
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.shaping.selecting import plan_choice

_LIMITS = NodeLimits(inputs=[[TensorType.BOOL]])


def _plan_select(context: Context, node: Node) -> Bind:
    condition, x, y = (tensor.shape for tensor in node.inputs)
    if len(condition) == 1:  # it selects slices
        condition += (1,) * (len(x) - 1)
    return plan_choice(node, condition, x, y)


def _plan_select_v2(context: Context, node: Node) -> Bind:
    return plan_choice(node, *(tensor.shape for tensor in node.inputs))


SELECT = override(builtin.SELECT, _plan_select, _LIMITS)
SELECT_V2 = override(builtin.SELECT_V2, _plan_select_v2, _LIMITS)
