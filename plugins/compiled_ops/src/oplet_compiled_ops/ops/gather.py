"""GATHER, compiled: for so few bytes that a numpy call would take longer."""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, NodeLimits, decline
from oplet.kernels.axes import resolve_axis
from oplet.schema.options import GatherOptions
from oplet_builtin_ops.ops.gather import REGISTRATION as BUILTIN
from oplet_builtin_ops.shaping.bounds import refuse_position
from oplet_compiled_ops.library.memory import Array, address, flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.selecting import POSITIONS, gather_kernel
from oplet_compiled_ops.threads.failing import failing
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most bytes of an output; for larger ones numpy is as fast.
_MOST = 1 << 20


def plan(context: Context, node: Node) -> Bind:
    source, positions = node.inputs
    output = node.outputs[0]
    if not output.size or output.is_dynamic or output.dtype.hasobject or output.size * output.dtype.itemsize > _MOST:
        decline("there is nothing to copy, or so much that numpy is as fast.")
    options = node.options(GatherOptions)
    axis = resolve_axis(options.axis, source.ndim)
    batch = options.batch_dims + (positions.ndim if options.batch_dims < 0 else 0)
    length = source.shape[axis]
    nbytes = prod(source.shape[axis + 1 :]) * source.dtype.itemsize
    counts = prod(source.shape[:batch]), prod(source.shape[batch:axis]), length, prod(positions.shape[batch:]), nbytes
    kernel = gather_kernel(POSITIONS[positions.type])
    ready(kernel)

    def fail(mark: Array) -> None:
        refuse_position(int(mark[1]), length)

    def bind() -> Thunk:
        mark, x, y = np.zeros(2, np.int64), source.data, output.data
        step = Step(kernel, [(address(x), flat(positions.data), address(y), mark, *counts)])
        return failing(thunk([step], 1, x, y), mark, fail)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[], list(POSITIONS)]))
