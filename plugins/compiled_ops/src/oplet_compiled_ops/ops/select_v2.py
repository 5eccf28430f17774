"""SELECT_V2, compiled: for so few bytes that a numpy call would take longer; numbers are copied as raw bits."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType
from oplet_builtin_ops.ops.select_v2 import REGISTRATION as BUILTIN
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.shaping.selecting import plan_choice


def plan(context: Context, node: Node) -> Bind:
    return plan_choice(node, *(tensor.shape for tensor in node.inputs))


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.BOOL]]))
