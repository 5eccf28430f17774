"""ONE_HOT, compiled: with a constant depth."""

from __future__ import annotations

from math import prod

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.schema.options import OneHotOptions
from oplet_builtin_ops.ops.one_hot import REGISTRATION as BUILTIN
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.picking import one_hot_kernel
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most numbers of the output.
_MOST = 1 << 16


def plan(context: Context, node: Node) -> Bind:
    indices, _, on, off = node.inputs
    output = node.outputs[0]
    if not 0 < output.size <= _MOST:
        decline("there is nothing to compute, or so much that numpy is as fast.")
    axis = node.options(OneHotOptions).axis % output.ndim
    bits = f"u{on.dtype.itemsize}"
    kernel = one_hot_kernel(f"i{indices.dtype.itemsize}", bits)
    ready(kernel)
    lengths = prod(output.shape[:axis]), output.shape[axis], prod(output.shape[axis + 1 :])

    def bind() -> Thunk:
        values = (flat(tensor.data).view(bits) for tensor in (on, off, output))
        return thunk([Step(kernel, [(flat(indices.data), *values, *lengths)])])

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.INT32, TensorType.INT64]], constant=[1]))
