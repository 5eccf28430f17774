"""PRELU, compiled: float32 with an alpha that repeats regularly."""

from __future__ import annotations

from math import inf

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_builtin_ops.ops.prelu import REGISTRATION as BUILTIN
from oplet_numba_ops.broadcasting import repetition
from oplet_numba_ops.elementwise.float_pairs import PRELU, bind_float_pair, float_pair_kernel
from oplet_numba_ops.overriding import Bind, override
from oplet_numba_ops.threads.team import ready


def plan(context: Context, node: Node) -> Bind:
    source, alpha = node.inputs
    if not source.size:
        decline("there is nothing to compute.")
    how = repetition(source.shape, alpha.shape)
    if how is None:
        decline("its alpha repeats in a way that its loops do not know.")
    ready(float_pair_kernel(how))
    node.in_place = [source]
    return lambda: bind_float_pair(PRELU, source, alpha.data, node.outputs[0], how, -inf, inf, context.num_threads)


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]]))
