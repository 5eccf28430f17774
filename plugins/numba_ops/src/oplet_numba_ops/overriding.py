"""A compiled kernel in the place of a numpy one: it serves the nodes that it can, the numpy kernel serves the rest.

def plan(context: Context, node: Node) -> Bind | None:
    if node.inputs[0].type != TensorType.FLOAT32:
        return None                                     # the numpy kernel runs this node
    kernel = SOME_KERNEL.compiled()                     # loads machine code, or compiles it, now rather than in `invoke`
    return lambda: functools.partial(kernel, node.inputs[0].data, node.outputs[0].data)

REGISTRATION = override(BUILTIN, plan)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from oplet import Context, Node, Registration
from oplet.errors import LimitError
from oplet.kernels.arrays import Thunk
from oplet_builtin_ops.arithmetic.single_precision import is_widened
from oplet_numba_ops.kernels import CompileError

__all__ = ["Bind", "Thunk", "override"]

#: Called once the tensors have their memory; gives what runs the node.
Bind = Callable[[], Thunk]


@dataclass(frozen=True)
class _Compiled:
    bind: Bind


def override(builtin: Registration, plan: Callable[[Context, Node], Bind | None]) -> Registration:
    """The registration that serves a node with a compiled kernel where `plan` has one.

    Args:
        builtin: the numpy kernel's registration. Its `prepare` always runs first: it checks the node and sets the output's shape.
        plan: called after it, when `node.prepared` is what the numpy kernel's `prepare` left there. It answers None where the
            numpy kernel is to run. Else it asks for temporaries of its own (those of the numpy kernel get no memory then), says
            in `node.in_place` which inputs it can write over (what the numpy kernel can does not count: a loop over two arrays is
            not vectorized where they are the same memory), and answers what `bind` is to call. Where a kernel cannot be compiled,
            or takes more memory than is allowed (`oplet.charge`, temporaries), the numpy kernel runs.
    """

    def prepare(context: Context, node: Node) -> None:
        if builtin.prepare is not None:
            builtin.prepare(context, node)
        if is_widened(node):
            return  # halves, which the numpy kernel sees as floats
        temporaries, node.temporaries = node.temporaries, []
        in_place, node.in_place = node.in_place, ()
        try:
            bind_compiled = plan(context, node)
        except (CompileError, LimitError):
            bind_compiled = None
        if bind_compiled is None:
            node.temporaries, node.in_place = temporaries, in_place
        else:
            node.prepared = _Compiled(bind_compiled)

    def bind(context: Context, node: Node) -> Thunk:
        if isinstance(node.prepared, _Compiled):
            return node.prepared.bind()
        if builtin.bind is not None:
            return builtin.bind(context, node)
        invoke = builtin.invoke

        def run() -> None:
            if invoke is not None:
                invoke(context, node)

        return run

    return replace(builtin, prepare=prepare, bind=bind, invoke=None)
