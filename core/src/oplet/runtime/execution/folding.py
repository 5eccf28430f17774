"""Constant folding: pure nodes with constant inputs run once, after `prepare`, and their outputs are constants from then on."""

from __future__ import annotations

from functools import partial
from typing import Any

from oplet.errors import CancelledError, DeadlineError, InvokeError, LimitError, PrepareError, failures
from oplet.ops.context import Node
from oplet.ops.shared_values import Computed, Derived
from oplet.ops.tensor import Allocation, Array
from oplet.runtime.execution.binding import bind_node
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.subgraph import Subgraph

__all__ = ["expand", "fold", "is_folded", "reads_folded_shapes"]

_COMPUTED, _DYNAMIC = Allocation.COMPUTED, Allocation.DYNAMIC
#: Those of constants.
_KNOWN = Allocation.CONSTANT, _COMPUTED
#: Expanded constants of so few bytes, such as biases, are made faster than another interpreter's are found.
_FEW = 4096


def is_folded(subgraph: Subgraph, node: Node) -> bool:
    """Return whether the node was folded, its inputs still have the arrays that it read then, and its outputs those that it made.

    Outputs are checked too: propagating shapes to delegates may take them away while the inputs get the same arrays again.
    """
    folded = subgraph.folded.get(node.index)
    return (
        folded is not None
        and all(
            tensor is None or (tensor.is_constant and tensor.source is source)
            for tensor, source in zip(node.inputs, folded.sources)
        )
        and all(tensor.allocation is _COMPUTED or tensor.is_variable for tensor in node.outputs)
    )


def expand(context: KernelContext, node: Node) -> bool:
    """Fold a node that its kernel computes without having prepared it (`Registration.expands`); return False if it has to be prepared."""
    registration, inputs, outputs, memory = node.registration, node.inputs, node.outputs, context.session.memory
    if registration is None or registration.expands is None or len(inputs) != 1 or len(outputs) != 1 or context.session.checks:
        return False
    source, output = inputs[0], outputs[0]
    if source is None or source.allocation not in _KNOWN or source.shape != output.shape or output.is_variable:
        return False
    if (write := registration.expands(source, output)) is None:
        return False
    own: Array | None = None

    def make() -> list[Computed]:
        nonlocal own
        own = memory.new_array(output, zeroed=False)
        write(source.data, own)
        own.setflags(write=False)
        return [Computed(own, True)]

    sources = [source.source]
    try:
        folded = node.derive("expanded", sources, make) if output.nbytes > _FEW else Derived(sources, make())
    except (CancelledError, LimitError):
        raise
    except failures():
        memory.release(output)
        return False  # it fails where it runs
    if own is None:  # another interpreter has computed it
        memory.charge_tensor(output)
    output.allocation = _COMPUTED
    _attach(context, node, folded)
    context.subgraph.folded[node.index] = folded
    return True


def fold(context: KernelContext, node: Node) -> bool:
    """Run a prepared node if it is pure and its inputs are constant; return whether it need not run in `invoke`.

    A node that fails here is run by `invoke`, as in LiteRT: it may be in a branch that is never taken.
    """
    for tensor in node.outputs:
        if tensor.allocation is not _COMPUTED:
            break
    else:
        if node.outputs:
            return True  # `prepare` called set_constant for all outputs
    for tensor in node.inputs:
        if tensor is not None and tensor.allocation not in _KNOWN:
            return False
    if node.registration is None or not node.registration.pure or not node.inputs:
        return False
    try:
        context.subgraph.folded[node.index] = _folded(context, node)
    except (PrepareError, InvokeError):
        for tensor in (*node.outputs, *node.temporaries):  # they get memory as those of any other node
            if not tensor.is_variable:
                tensor.set_memory(None)
                context.session.memory.release(tensor)
        return False
    return True


def _folded(context: KernelContext, node: Node) -> Derived:
    """Compute a folded node's outputs, or take those that another interpreter computed from the same constants; return them."""
    sources = [None if tensor is None else tensor.source for tensor in node.inputs]
    outputs = node.outputs
    own: list[Computed] | None = None
    # Temporaries are gone afterwards, and a kernel in C may keep addresses.
    again = not node.temporaries and node.registration is not None and not node.registration.library

    def make() -> list[Computed]:
        nonlocal own
        _run(context, node)
        own = [Computed(tensor.data, again) for tensor in outputs]
        return own

    key: list[Any] = ["outputs", context.num_threads, context.default_delegates]
    for tensor in outputs:
        if context.session.checks or tensor.is_variable or tensor.dtype.hasobject:
            make()
            return Derived(sources, None)
        key += tensor.dtype, None if tensor.allocation is _DYNAMIC else tensor.shape
    folded = node.derive(tuple(key), sources, make)
    if folded.value is not own:  # another interpreter has computed it
        memory = context.session.memory
        for tensor, computed in zip(outputs, folded.value):
            tensor.shape = computed.shape
            memory.charge_tensor(tensor)
            tensor.allocation = _COMPUTED
        _finish(context, node)
    _attach(context, node, folded)
    return folded


def _attach(context: KernelContext, node: Node, folded: Derived) -> None:
    """Set the values of a folded node's outputs, and how to compute them again when they are read after their release."""
    for position, (tensor, computed) in enumerate(zip(node.outputs, folded.value)):
        tensor.set_computed(computed, partial(_computed_again, context, node, folded, position))


def _computed_again(context: KernelContext, node: Node, folded: Derived, position: int) -> Array:
    """Return the value of a folded node's output that was released: another interpreter's, if one still has it, or a new one."""
    array: Array | None = folded.value[position].get()
    if array is None:
        absent = [tensor for tensor in node.inputs if tensor is not None and tensor.is_let_go]
        try:
            _run(context, node)
        except BaseException:
            _attach(context, node, folded)  # nobody may read what is not finished
            raise
        arrays = [tensor.data for tensor in node.outputs]
        for computed, array in zip(folded.value, arrays):
            computed.hold(array)
            computed.let_go()  # this tensor keeps it now, until the next reader is bound
        _attach(context, node, folded)
        for tensor in absent:
            tensor.let_go()
        array = arrays[position]
    return array


def reads_folded_shapes(subgraph: Subgraph, node: Node) -> bool:
    """Return whether a node's inputs were computed from shapes ahead of the run. LiteRT does so in `invoke`, and refuses then.

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
    memory = context.session.memory
    for tensor in (*node.outputs, *node.temporaries) if node.temporaries else node.outputs:
        if tensor.allocation is not _DYNAMIC:
            # Variables begin as 0; other outputs are written whole now.
            tensor.set_memory(memory.new_array(tensor, zeroed=tensor.is_variable))
    thunk = bind_node(context, node)
    try:
        thunk()
    except (CancelledError, DeadlineError):
        raise  # they end the run, and are no failure of the node
    except failures() as error:
        raise context.node_error(PrepareError, node, error, "failed to prepare") from error
    for tensor in node.outputs:
        if not tensor.is_variable:  # whose value is its first one, and other nodes may change it
            tensor.data.setflags(write=False)
            tensor.allocation = _COMPUTED
    _finish(context, node)


def _finish(context: KernelContext, node: Node) -> None:
    node.temporaries = []
    node.kernel_cache = None, None  # it does not run again
    context.session.memory.release(node)
