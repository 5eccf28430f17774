"""CAST, compiled: integers to float32, and between 32 and 64 bits."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, decline
from oplet_builtin_ops.ops.cast import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.casts import CASTS, cast_kernel
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    constants = CASTS.get((source.type, output.type))
    if constants is None or not source.size:
        decline("there is nothing to cast, or numpy casts these types.")
    kernel = cast_kernel(*constants)
    ready(kernel)
    ranges = cut(source.size, source.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        x, y = flat(source.data), flat(output.data)
        if constants[2]:
            x = x.view("u1")
        parts = each(ranges, lambda some, _: (x[slice(*some)], y[slice(*some)]))
        return thunk([Step(kernel, parts)], context.num_threads)

    return bind


_SOURCES, _TARGETS = (list(dict.fromkeys(types)) for types in zip(*CASTS))
REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[_SOURCES], outputs=[_TARGETS]))
