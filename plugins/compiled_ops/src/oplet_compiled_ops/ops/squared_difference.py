"""SQUARED_DIFFERENCE, compiled: float32."""

from __future__ import annotations

from math import inf

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.ops.squared_difference import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import SQUARED_DIFFERENCE
from oplet_compiled_ops.elementwise.flat import bind_float_pair, float_pair_kernel
from oplet_compiled_ops.elementwise.plain.broadcasting import operands
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.team import ready


def plan(context: Context, node: Node) -> Bind:
    found = operands(node)
    if found is None:
        decline("its operand repeats in a way that its loops do not know, or there is nothing to compute.")
    large, small, how, _ = found
    ready(float_pair_kernel(SQUARED_DIFFERENCE, how.per_row))
    offer_in_place(node)

    def bind() -> Thunk:
        first, second = (small, large) if small is not large and node.writes_over(small) else (large, small)
        return bind_float_pair(SQUARED_DIFFERENCE, first, second.data, node.outputs[0], how, -inf, inf, context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]]))
