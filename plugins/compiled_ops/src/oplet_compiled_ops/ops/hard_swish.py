"""HARD_SWISH, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType
from oplet_builtin_ops.ops.hard_swish import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.elementwise.float_maps import HARD_SWISH, HARD_SWISH_OVER
from oplet_compiled_ops.elementwise.maps.tables import TABLED, plan_table
from oplet_compiled_ops.overriding import Bind, override


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if source.type in TABLED:
        return plan_table(context, node)
    node.in_place = [source]
    return plan_flat(context, HARD_SWISH, (source, output), over=HARD_SWISH_OVER)


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *TABLED]]))
