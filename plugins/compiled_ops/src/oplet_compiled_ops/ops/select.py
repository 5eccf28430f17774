"""SELECT, compiled; see SELECT_V2."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType
from oplet_builtin_ops.ops.select import REGISTRATION as BUILTIN
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.shaping.selecting import plan_choice


def plan(context: Context, node: Node) -> Bind:
    condition, x, y = (tensor.shape for tensor in node.inputs)
    if len(condition) == 1:  # it selects slices
        condition += (1,) * (len(x) - 1)
    return plan_choice(node, condition, x, y)


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.BOOL]]))
