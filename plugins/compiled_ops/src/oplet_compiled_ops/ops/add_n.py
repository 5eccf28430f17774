"""ADD_N, compiled: for arrays so small that a numpy call would take longer."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_builtin_ops.ops.add_n import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.plain.plain_pairs import sum_kernel
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most numbers that are added, of all terms together.
_MOST = 1 << 16
_CODES = {TensorType.FLOAT32: "f4", TensorType.INT32: "i4"}


def plan(context: Context, node: Node) -> Bind:
    output = node.outputs[0]
    if not 0 < output.size * len(node.inputs) <= _MOST:
        decline("there is nothing to compute, or so much that numpy is as fast.")
    kernel = sum_kernel(_CODES[output.type])
    ready(kernel)

    def bind() -> Thunk:
        total = flat(output.data)
        first, *rest = (flat(tensor.data) for tensor in node.inputs)
        parts = [(first if number == 0 else total, term, total) for number, term in enumerate(rest)]
        return thunk([Step(kernel, [part]) for part in parts])

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[list(_CODES)]))
