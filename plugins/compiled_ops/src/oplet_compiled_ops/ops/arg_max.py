"""ARG_MAX, compiled: along a short constant last axis, or for small tensors."""

from __future__ import annotations

from typing import Final

from oplet import Context, Node, NodeLimits, decline
from oplet.kernels.axes import read_int, resolve_axis
from oplet_builtin_ops.shaping.arg_min_max import ARG_MAX as BUILTIN
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.searching import ARG_MAX, VALUES, plan_search
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The longest row; for longer ones numpy is as fast.
_LONGEST: Final = 32
_POSITIONS = list(dict.fromkeys(types[1] for types in ARG_MAX))


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    key = source.type, output.type
    if node.prepared is not True or not output.size:
        decline("its axis is not known yet, or there is nothing to compute.")
    along_rows = resolve_axis(read_int(node.inputs[1]), source.ndim) == source.ndim - 1
    if not along_rows or source.shape[-1] > _LONGEST or key not in ARG_MAX:
        return plan_search(node, least=False)
    kernel = ARG_MAX[key]
    ready(kernel)
    ranges = cut(output.size, 1, 1, length=source.size // WORTH_VALUES)

    def bind() -> Thunk:
        rows, found = source.data.reshape(-1, source.shape[-1]), output.data.reshape(-1)
        return thunk([Step(kernel, each(ranges, lambda some, _: (rows[slice(*some)], found[slice(*some)])))])

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[list(VALUES)], outputs=[_POSITIONS]))
