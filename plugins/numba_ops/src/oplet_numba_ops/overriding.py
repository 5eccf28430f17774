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

#: Is called when the tensors have their memory, and returns the node's thunk.
Bind = Callable[[], Thunk]
#: Declines a node, or returns.
Check = Callable[[Context, Node], None]


@dataclass(frozen=True)
class _Compiled:
    bind: Bind


def override(
    builtin: Registration, plan: Callable[[Context, Node], Bind], limits: NodeLimits, early: Check | None = None
) -> Registration:
    """A registration that serves the nodes for which `plan` has a compiled kernel, and declines the others.

    Args:
        builtin: the numpy kernel's registration. Its `prepare` runs first: it checks the node, sets the output's shape, and
            prepares what `plan` reads. Nodes that it refuses are declined, so that its own package raises the error.
        plan: is called next; `node.prepared` is then what the numpy kernel's `prepare` set. It declines nodes that have no
            compiled kernel. For others it requests its own temporaries (those of the numpy kernel get no memory), sets
            `node.in_place` to the inputs that it can write over (the numpy kernel's do not count: loops over two arrays of the
            same memory are not vectorized), and returns what `bind` is to call. A node whose kernel cannot be compiled, or
            takes more memory than is allowed (`oplet.charge`, temporaries), is declined too.
        limits: the nodes that it may serve, as far as that is known without preparing them.
        early: declines nodes before the numpy kernel's `prepare`, to save that. The node is not checked yet: it may lack
            tensors.
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
    """Decline every node on one thread, where numpy is as fast."""
    if context.num_threads == 1:
        decline("numpy is as fast on one thread.")


def _let_go(node: Node) -> None:
    """Drop what was computed from constants, since the next provider makes its own."""
    node.kernel_cache = None, None
