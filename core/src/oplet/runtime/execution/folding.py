"""Constant folding: pure nodes with constant inputs run once, after `prepare`, and their outputs are constants from then on."""

from __future__ import annotations

from oplet.errors import CancelledError, DeadlineError, PrepareError, failures
from oplet.ops.context import Node
from oplet.ops.shared_values import Derived
from oplet.ops.tensor import Allocation, Array
from oplet.runtime.execution.binding import bind_node
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.subgraph import Subgraph

__all__ = ["fold", "is_folded", "reads_folded_shapes"]

_COMPUTED, _DYNAMIC = Allocation.COMPUTED, Allocation.DYNAMIC


def is_folded(subgraph: Subgraph, node: Node) -> bool:
    """Whether the node was folded, and its inputs still have the arrays that it read then."""
    folded = subgraph.folded.get(node.index)
    return folded is not None and all(
        tensor is None or (tensor.is_constant and tensor.data is array) for tensor, array in zip(node.inputs, folded.sources)
    )


def fold(context: KernelContext, node: Node) -> bool:
    """Run a prepared node if it is pure and its inputs are constant; return whether it need not run in `invoke`."""
    for tensor in node.outputs:
        if tensor.allocation is not _COMPUTED:
            break
    else:
        if node.outputs:
            return True  # `prepare` called set_constant for all outputs
    for tensor in node.inputs:
        if tensor is not None and not tensor.is_constant:
            return False
    if node.registration is None or not node.registration.pure or not node.inputs:
        return False
    context.subgraph.folded[node.index] = _folded(context, node)
    return True


def _folded(context: KernelContext, node: Node) -> Derived:
    """The outputs of a node, which have them afterwards: those that another interpreter of the model has from the same constants, or new ones."""
    sources = [None if tensor is None else tensor.data for tensor in node.inputs]
    outputs = node.outputs
    ran = False

    def make() -> list[Array]:
        nonlocal ran
        ran = True
        _run(context, node)
        return [tensor.data for tensor in outputs]

    if context.session.checks or any(tensor.is_variable or tensor.dtype.hasobject for tensor in outputs):
        make()
        return Derived(sources, None)
    fixed = tuple(None if tensor.is_dynamic else tensor.shape for tensor in outputs)
    key = "outputs", context.num_threads, tuple(tensor.dtype for tensor in outputs), fixed
    folded = node.derive(key, sources, make)
    if not ran or any(tensor.data is not array for tensor, array in zip(outputs, folded.value)):
        memory = context.session.memory
        for tensor, array in zip(outputs, folded.value):
            tensor.shape = array.shape
            memory.charge_tensor(tensor)
            tensor.set_memory(array)
            tensor.allocation = _COMPUTED
        _finish(context, node)
    return folded


def reads_folded_shapes(subgraph: Subgraph, node: Node) -> bool:
    """Whether a node's inputs were folded from shapes. LiteRT computes those in `invoke`, and refuses such a node only then.

    That matters, as many models cannot run with the file's shapes, but only with those that a resize gives them.
    """
    makers = {tensor: subgraph.nodes[i] for i in subgraph.execution_plan for tensor in subgraph.nodes[i].outputs}
    waiting = [(tensor, False) for tensor in node.inputs if tensor is not None]
    seen = set(waiting)
    while waiting:
        tensor, folded = waiting.pop()
        maker = makers.get(tensor)
        if maker is None:
            continue
        is_known = is_folded(subgraph, maker)
        if folded and tensor.allocation is _COMPUTED and not is_known:
            return True  # set by `prepare` from a shape, not folded from values
        found = [(source, is_known) for source in maker.inputs if source is not None]
        waiting.extend(dict.fromkeys(found).keys() - seen)
        seen.update(found)
    return False


def _run(context: KernelContext, node: Node) -> None:
    for tensor in (*node.outputs, *node.temporaries):
        if tensor.allocation is not _DYNAMIC:
            # Variables begin as 0; other outputs are written whole now.
            tensor.set_memory(context.new_array(tensor, zeroed=tensor.is_variable))
    thunk = bind_node(context, node)
    try:
        thunk()
    except (CancelledError, DeadlineError):
        raise  # they end the run, and are no failure of the node
    except failures() as error:
        raise context.node_error(PrepareError, node, error, "failed to prepare") from error
    for tensor in node.outputs:
        if tensor.is_variable:
            continue  # the value is its first one, and other nodes may change it
        tensor.data.setflags(write=False)
        tensor.allocation = _COMPUTED
    _finish(context, node)


def _finish(context: KernelContext, node: Node) -> None:
    node.temporaries = []
    node.kernel_cache = None, None  # it does not run again
    context.session.memory.release(node)
