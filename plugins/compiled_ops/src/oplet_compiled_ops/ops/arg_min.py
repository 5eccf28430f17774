"""ARG_MIN, compiled: small tensors."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, decline
from oplet_builtin_ops.shaping.arg_min_max import ARG_MIN as BUILTIN
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.shaping.searching import VALUES, plan_search


def plan(context: Context, node: Node) -> Bind:
    if node.prepared is not True or not node.outputs[0].size:
        decline("its axis is not known yet, or there is nothing to compute.")
    return plan_search(node, least=True)


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[list(VALUES)]))
