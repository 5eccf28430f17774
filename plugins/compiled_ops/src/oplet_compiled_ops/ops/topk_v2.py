"""TOPK_V2, compiled: small tensors with constant k."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, decline
from oplet_builtin_ops.ops.topk_v2 import REGISTRATION as BUILTIN
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.shaping.searching import POSITIONS, VALUES, top_kernel
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most comparisons; for more, numpy sorts faster.
_MOST = 1 << 14


def plan(context: Context, node: Node) -> Bind:
    source = node.inputs[0]
    values, places = node.outputs
    k = values.shape[-1] if values.ndim else 0
    if node.prepared is not True or not values.size or source.size * k > _MOST:
        decline("its k is not known yet, there is nothing to compute, or so much that numpy is faster.")
    kernel = top_kernel(VALUES[source.type], POSITIONS[places.type])
    ready(kernel)
    length = source.shape[-1]
    return lambda: thunk([Step(kernel, [(flat(source.data), flat(values.data), flat(places.data), length, k)])])


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[list(VALUES)], constant=[1]))
