"""CUMSUM, compiled, along a constant axis."""

from __future__ import annotations

from functools import partial
from math import prod

from oplet import Context, Node, NodeLimits, TensorType, checkpoint, decline
from oplet.kernels.axes import read_int, resolve_axis
from oplet.schema.options import CumsumOptions
from oplet_builtin_ops.ops.cumsum import REGISTRATION as BUILTIN
from oplet_compiled_ops.library.memory import writable
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.running_sums import CUMSUM
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The numbers that a call adds up.
_TOGETHER = 1 << 22
#: The most integers side by side that are added up in the time of a call of numpy.
_FEW = 1 << 10


def plan(context: Context, node: Node) -> Bind:
    source, axis_tensor = node.inputs
    if not source.size:
        decline("there is nothing to compute.")
    options = node.options(CumsumOptions)
    axis = resolve_axis(read_int(axis_tensor), source.ndim)
    shape = prod(source.shape[:axis]), source.shape[axis], prod(source.shape[axis + 1 :])
    if shape[2] == 1 and source.type is not TensorType.FLOAT32 and source.size > _FEW:
        decline("numpy is faster along many integers that are side by side.")
    each = max(_TOGETHER // (shape[1] * shape[2]), 1)
    ranges = [(first, min(first + each, shape[0])) for first in range(0, shape[0], each)]
    kernel = CUMSUM[source.type]
    ready(kernel)

    def bind() -> Thunk:
        values, sums = writable(source.data).reshape(shape), node.outputs[0].data.reshape(shape)
        if len(ranges) == 1:
            return thunk([Step(kernel, [(values, sums, int(options.exclusive), int(options.reverse), *ranges[0])])])
        sweep = partial(kernel.compiled(), values, sums, int(options.exclusive), int(options.reverse))

        def run() -> None:
            for first, last in ranges:
                sweep(first, last)
                checkpoint()

        return run

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[list(CUMSUM)], constant=[1]))
