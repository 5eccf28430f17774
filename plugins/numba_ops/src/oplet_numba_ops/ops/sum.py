"""SUM, compiled: float32 over the last axes."""

from __future__ import annotations

from math import prod

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.kernels.axes import read_ints, resolve_axis
from oplet_builtin_ops.ops.sum import REGISTRATION as BUILTIN
from oplet_numba_ops.compiling.memory import flat
from oplet_numba_ops.elementwise.means import SUM_OF_ROWS
from oplet_numba_ops.overriding import Bind, Thunk, override
from oplet_numba_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_numba_ops.threads.team import Step, ready, thunk


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if not source.size:
        decline("there is nothing to compute.")
    axes = {resolve_axis(axis, source.ndim) for axis in read_ints(node.inputs[1]) if source.ndim}
    kept = max((axis + 1 for axis, length in enumerate(source.shape) if length > 1 and axis not in axes), default=0)
    if any(axis < kept and source.shape[axis] > 1 for axis in axes):
        decline("its axes are not the last ones.")
    columns = prod(source.shape[kept:])
    ready(SUM_OF_ROWS)
    ranges = cut(output.size, source.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        x, y = flat(source.data), flat(output.data)
        parts = each(ranges, lambda some, _: (x[some[0] * columns : some[1] * columns], y[slice(*some)], columns))
        return thunk([Step(SUM_OF_ROWS, parts)], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]], constant=[1]))
