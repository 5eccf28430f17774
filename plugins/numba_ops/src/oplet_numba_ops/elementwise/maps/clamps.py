"""RELU and other clamps. Alone on one thread numpy is as fast for floats, but its node would part compiled neighbours (`threads.joining`)."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, Registration, TensorType, decline
from oplet_numba_ops.elementwise.flat import plan_flat
from oplet_numba_ops.elementwise.float_maps import CLAMP, CLAMP_OVER
from oplet_numba_ops.elementwise.maps.tables import TABLED, plan_table
from oplet_numba_ops.overriding import Bind, override

__all__ = ["clamp_registration"]


def clamp_registration(builtin: Registration, low: float, high: float) -> Registration:
    """The registration of an op that clamps numbers between two bounds."""

    def plan(context: Context, node: Node) -> Bind:
        source, output = node.inputs[0], node.outputs[0]
        if source.type in TABLED:
            return plan_table(context, node)
        if not output.size:
            decline("there is nothing to compute.")
        node.in_place = [source]
        return plan_flat(context, CLAMP, (source, output), low, high, over=CLAMP_OVER)

    return override(builtin, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *TABLED]]))
