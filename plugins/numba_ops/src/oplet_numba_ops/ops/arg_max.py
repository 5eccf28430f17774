"""ARG_MAX, compiled: along a short last axis that is constant."""

from __future__ import annotations

from typing import Final

from oplet import Context, Node
from oplet.kernels.axes import read_int, resolve_axis
from oplet_builtin_ops.ops.arg_max import REGISTRATION as BUILTIN
from oplet_numba_ops.overriding import Bind, Thunk, override
from oplet_numba_ops.searching import ARG_MAX
from oplet_numba_ops.shares import WORTH_VALUES, cut, each
from oplet_numba_ops.team import Step, ready, thunk

#: numpy is fast along longer rows.
_LONGEST: Final = 32


def plan(context: Context, node: Node) -> Bind | None:
    source, output = node.inputs[0], node.outputs[0]
    key = source.type, output.type
    if key not in ARG_MAX or node.prepared is not True or not output.size or not 0 < source.shape[-1] <= _LONGEST:
        return None
    if resolve_axis(read_int(node.inputs[1]), source.ndim) != source.ndim - 1:
        return None
    kernel = ARG_MAX[key]
    ready(kernel)
    ranges = cut(output.size, 1, 1, length=source.size // WORTH_VALUES)

    def bind() -> Thunk:
        rows, found = source.data.reshape(-1, source.shape[-1]), output.data.reshape(-1)
        return thunk([Step(kernel, each(ranges, lambda some, _: (rows[slice(*some)], found[slice(*some)])))])

    return bind


REGISTRATION = override(BUILTIN, plan)
