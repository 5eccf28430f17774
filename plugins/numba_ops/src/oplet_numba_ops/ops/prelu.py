"""PRELU, compiled: float32 with an alpha that repeats regularly."""

from __future__ import annotations

from math import inf

from oplet import Context, Node, TensorType
from oplet_builtin_ops.ops.prelu import REGISTRATION as BUILTIN
from oplet_numba_ops.broadcasting import repetition
from oplet_numba_ops.float_pairs import PRELU, bind_float_pair, float_pair_kernel
from oplet_numba_ops.overriding import Bind, override
from oplet_numba_ops.team import ready


def plan(context: Context, node: Node) -> Bind | None:
    source, alpha = node.inputs
    if source.type != TensorType.FLOAT32 or not source.size:
        return None
    how = repetition(source.shape, alpha.shape)
    if how is None:
        return None
    ready(float_pair_kernel(how))
    node.in_place = [source]
    return lambda: bind_float_pair(PRELU, source, alpha.data, node.outputs[0], how, -inf, inf, context.num_threads)


REGISTRATION = override(BUILTIN, plan)
