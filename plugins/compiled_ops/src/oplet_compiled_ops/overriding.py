"""Overriding a numpy kernel by a compiled one, which serves the nodes that it can and declines the rest (leaves them to numpy's).

def plan(context: Context, node: Node) -> Bind:
    if not node.outputs[0].size:
        decline("there is nothing to compute.")         # the next provider serves this node: oplet-builtin-ops, mostly
    ready(SOME_KERNEL)                                  # finds machine code now rather than in `invoke`
    return lambda: thunk([Step(SOME_KERNEL, [(node.inputs[0].data, node.outputs[0].data)])])

REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Allocation, Context, Node, NodeLimits, Registration, Tensor, TensorType, charge, decline
from oplet.errors import LimitError, PrepareError
from oplet.kernels.arrays import Thunk
from oplet_compiled_ops.library.kernels import MissingKernelError
from oplet_compiled_ops.library.memory import address

__all__ = ["Bind", "Check", "Fuses", "Thunk", "charge_constant", "has_numpy_kernel", "is_compiled", "needs_threads", "override"]

_HALF = TensorType.FLOAT16
#: In `Context.resources`: by the address of a constant (or what stands for it, if it is computed or unpacked), the node whose copy is not charged.
_LAID_OUT = "oplet_compiled_ops", "laid out"
#: Bytes of a number of a copy that is not charged: float32.
_ITEM = 4
#: Is called when the tensors have their memory, and returns the node's thunk.
Bind = Callable[[], Thunk]
#: Declines a node, or returns.
Check = Callable[[Context, Node], None]
#: Checks a node, and returns what `plan` reads of it.
Prepare = Callable[[Context, Node], Any]
#: Chooses the nodes that a kernel computes with its own.
Fuses = Callable[[Node, Sequence[Node]], Sequence[Node]]


#: By the `prepare` of a registration that `override` has made, and by that of numpy's: numpy's registration.
_OVERRIDDEN: dict[Check, Registration] = {}


def override(
    builtin: Registration,
    plan: Callable[[Context, Node], Bind],
    limits: NodeLimits,
    early: Check | None = None,
    fuses: Fuses | None = None,
    check: Prepare | None = None,
) -> Registration:
    """Build a registration that serves the nodes for which `plan` finds a compiled kernel, and declines the others.

    Args:
        builtin: the numpy kernel's registration. Its `prepare` runs first: it checks the node, sets the output's shape, and
            prepares what `plan` reads. Nodes that it refuses are declined, so that its own package raises the error.
        plan: is called next; `node.prepared` is then what the numpy kernel's `prepare` has set; nothing else that it asked for
            stays, such as scratch tensors. It declines nodes that have no compiled kernel. For others it requests its scratch tensors, sets `node.in_place` to the inputs that it can write
            over, and returns the function that `bind` is to call. A node whose kernel is not in the library, or takes more
            memory than is allowed (`oplet.charge`, temporaries), is declined too.
        limits: which nodes `plan` may serve, as far as their types and constants tell before they are prepared.
        early: declines nodes before the numpy kernel's `prepare`, to save the time of that; None for no such check. The node is
            not checked yet: it may lack tensors.
        fuses: chooses, of the nodes that produce a node's inputs, those that the kernel computes together with it (see
            `Registration`); they must have a numpy kernel (`has_numpy_kernel`). `plan` finds them in `node.absorbed`, prepared.
            None for no fusion.
        check: makes the checks of the numpy kernel's `prepare` in its place, sets the output's shape and returns what `plan` finds as
            `node.prepared`. It saves the time of planning what numpy would do.
    """

    def prepare(context: Context, node: Node) -> None:
        for tensor in node.inputs:
            if tensor is not None and tensor.type is _HALF:
                decline("it computes with no halves.")
        if early is not None:
            early(context, node)
        try:
            for each in node.absorbed:
                if (numpys := _numpy_kernel(each)) is not None:
                    each.prepared = _prepared_by(numpys, context, each)  # `plan` reads it
            node.prepared = _prepared_by(builtin, context, node) if check is None else check(context, node)
            node.prepared = plan(context, node)
        except MissingKernelError as error:
            _let_go(node)
            decline(f"it has no machine code: {error}.")
        except LimitError as error:
            _let_go(node)
            decline(f"it would take more memory than is allowed: {error}")
        except PrepareError as error:
            _let_go(node)
            decline(str(error))

    def bind(context: Context, node: Node) -> Thunk:
        bound: Bind = node.prepared
        return bound()

    _OVERRIDDEN[prepare] = builtin
    if builtin.prepare is not None:
        _OVERRIDDEN[builtin.prepare] = builtin
    return builtin.__replace__(prepare=prepare, bind=bind, invoke=None, expands=None, limits=limits, fuses=fuses or builtin.fuses)


def is_compiled(node: Node) -> bool:
    """Return whether a node's kernel is one of this package: its registration was made by `override`, or is a copy of one."""
    found = _numpy_kernel(node)
    return found is not None and node.registration is not None and found.prepare is not node.registration.prepare


def has_numpy_kernel(node: Node) -> bool:
    """Return whether a node is served by a kernel of this package or by the numpy kernel that it overrides, not by another
    package's.
    """
    return _numpy_kernel(node) is not None


def _numpy_kernel(node: Node) -> Registration | None:
    kernel = node.registration
    return None if kernel is None or kernel.prepare is None else _OVERRIDDEN.get(kernel.prepare)


def _prepared_by(kernel: Registration, context: Context, node: Node) -> Any:
    """Return what a kernel's `prepare` sets as `node.prepared`; the node is otherwise as before. Values of `cached` are common to both."""
    if kernel.prepare is None:
        return None
    before = node.registration, node.temporaries, node.in_place, node.prepared, node.main
    cache, persistent = node.kernel_cache
    node.registration, node.temporaries, node.prepared, node.kernel_cache = kernel, [], None, (cache, None)
    try:
        kernel.prepare(context, node)
        return node.prepared
    finally:
        node.registration, node.temporaries, node.in_place, node.prepared, node.main = before
        node.kernel_cache = node.kernel_cache[0], persistent


def needs_threads(context: Context, node: Node) -> None:
    """Decline the node if it runs on one thread, since numpy's kernel is as fast then."""
    if context.num_threads == 1:
        decline("numpy is as fast on one thread.")


def _let_go(node: Node) -> None:
    """Drop what has been cached of a declined node's constants (such as packed weights), since the kernel that serves it makes
    its own.
    """
    node.kernel_cache = None, None


def charge_constant(context: Context, node: Node, tensor: Tensor, nbytes: int) -> None:
    """Count the bytes of a repacked copy of a constant (weights in another layout) against the model's memory limit; called in
    `prepare`.

    The copy of the first node that reads a constant is free up to the constant's own size (its size as float32 if it lies in the
    file). Copies for further nodes count in full, since a file may refer to the same bytes any number of times.

    Raises:
        LimitError: the limit would be exceeded.
    """
    in_file = tensor.allocation is Allocation.CONSTANT
    readers: dict[int, int] = context.resources.setdefault(_LAID_OUT, {})
    source = tensor.source  # of packed integers not the array, which need not be there
    if readers.setdefault(address(source) if in_file and isinstance(source, np.ndarray) else -id(source), id(node)) == id(node):
        nbytes -= _ITEM * tensor.size if in_file else tensor.nbytes
    if nbytes > 0:
        charge(nbytes)
