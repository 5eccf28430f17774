"""A compiled kernel in the place of a numpy one: it serves the nodes that it can, and declines the rest.

def plan(context: Context, node: Node) -> Bind:
    if not node.outputs[0].size:
        decline("there is nothing to compute.")         # the next provider serves this node: oplet-builtin-ops, mostly
    kernel = SOME_KERNEL.compiled()                     # loads machine code, or compiles it, now rather than in `invoke`
    return lambda: functools.partial(kernel, node.inputs[0].data, node.outputs[0].data)

REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]]))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from oplet import Context, Node, NodeLimits, Registration, TensorType, decline
from oplet.errors import LimitError, PrepareError
from oplet.kernels.arrays import Thunk
from oplet_numba_ops.compiling.kernels import CompileError

__all__ = ["Bind", "Thunk", "needs_threads", "override"]

#: Called once the tensors have their memory; gives what runs the node.
Bind = Callable[[], Thunk]
#: Declines a node, or does nothing.
Check = Callable[[Context, Node], None]


@dataclass(frozen=True)
class _Compiled:
    bind: Bind


def override(
    builtin: Registration, plan: Callable[[Context, Node], Bind], limits: NodeLimits, early: Check | None = None
) -> Registration:
    """The registration that serves the nodes for which `plan` has a compiled kernel.

    Args:
        builtin: the numpy kernel's registration. Its `prepare` runs first: it checks the node, sets the output's shape, and works
            out what `plan` reads. Nodes that it refuses are declined, so that the package which it belongs to says so.
        plan: called after it, when `node.prepared` is what the numpy kernel's `prepare` left there. It declines the nodes that
            have no compiled kernel. Else it asks for temporaries of its own (those of the numpy kernel get no memory), says
            in `node.in_place` which inputs it can write over (what the numpy kernel can does not count: a loop over two arrays is
            not vectorized where they are the same memory), and answers what `bind` is to call. Where a kernel cannot be compiled,
            or takes more memory than is allowed (`oplet.charge`, temporaries), the node is declined too.
        limits: what can be said of the nodes that it serves without preparing them.
        early: declines what can be told before the numpy kernel's `prepare`, which then need not run in vain. The node is not
            checked yet: it may lack tensors.
    """

    def prepare(context: Context, node: Node) -> None:
        if any(tensor is not None and tensor.type is TensorType.FLOAT16 for tensor in node.inputs):
            decline("it computes with no halves.")
        if early is not None:
            early(context, node)
        try:
            if builtin.prepare is not None:
                builtin.prepare(context, node)
            node.temporaries, node.in_place = [], ()
            node.prepared = _Compiled(plan(context, node))
        except CompileError as error:
            _let_go(node)
            decline(f"its kernel cannot be compiled here: {error}")
        except LimitError as error:
            _let_go(node)
            decline(f"it would take more memory than is allowed: {error}")
        except PrepareError as error:
            _let_go(node)
            decline(str(error))

    return replace(builtin, prepare=prepare, bind=lambda context, node: node.prepared.bind(), invoke=None, limits=limits)


def needs_threads(context: Context, node: Node) -> None:
    """Decline every node where there is one thread, on which numpy is as fast."""
    if context.num_threads == 1:
        decline("numpy is as fast on one thread.")


def _let_go(node: Node) -> None:
    """Drop what was made of constants: the next provider makes its own."""
    node.kernel_cache = None, None
