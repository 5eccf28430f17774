"""Preparation: a node's kernel checks its inputs, sets its outputs' shapes and types, and requests scratch memory."""

from __future__ import annotations

from collections.abc import Sequence

from oplet.errors import PrepareError, UnservedNodeError, failures
from oplet.ops.context import Declined, Node
from oplet.ops.tensor import Allocation, Tensor
from oplet.runtime.execution.checks import check_inputs, check_prepared
from oplet.runtime.execution.fallback import fall_back
from oplet.runtime.execution.folding import fold, is_folded, reads_folded_shapes
from oplet.runtime.execution.initialization import initialize_provider
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.memory.allocation import allocate_own
from oplet.schema.enums import BuiltinOperator

__all__ = ["prepare_node", "prepare_or_defer", "propagate_shapes"]

_ARENA, _COMPUTED, _DYNAMIC = Allocation.ARENA, Allocation.COMPUTED, Allocation.DYNAMIC


def prepare_or_defer(context: KernelContext, node: Node) -> bool:
    """Prepare a node; False if its kernel refuses it but LiteRT would do so only in `invoke`, where it is to be prepared again."""
    try:
        prepare_node(context, node)
    except PrepareError:
        if node.delegate is not None or node.absorbed or not reads_folded_shapes(context.subgraph, node):
            raise
        return False
    return True


def prepare_node(context: KernelContext, node: Node) -> None:
    """Prepare a node with its first provider that does not decline it.

    Raises:
        PrepareError: the kernel refuses the node, or all providers decline it.
    """
    if node.providers is not None:
        node.providers.restart()
    while not (initialize_provider(context, node) and _try_prepare(context, node)):
        pass  # it was declined, and the next provider is tried


def _try_prepare(context: KernelContext, node: Node) -> bool:
    _reset_node(context, node)
    registration, memory = node.registration, context.session.memory
    if node.absorbed and (registration is None or (registration.absorbs is None and registration.fuses is None)):
        raise PrepareError(f"Another kernel than the one that serves {node!r} would compute the nodes before it with it.")
    if registration is None or registration.prepare is None:
        return True
    context.preparing = True
    inputs, outputs = node.inputs[:], node.outputs[:]
    memory.release(node)
    node.charged = None
    outer = memory.charge_to(node)
    declined: Declined | None = None
    try:
        for each in (*node.absorbed, node):
            check_inputs(each, memory)
        registration.prepare(context, node)
        check_prepared(node, inputs, outputs)
    except Declined as reason:
        declined = reason
    except failures() as error:
        raise context.node_error(PrepareError, node, error, "failed to prepare") from error
    finally:
        context.preparing = False
        memory.charge_to(outer)
    if declined is None:
        return True
    try:
        fall_back(context, node, declined)
    finally:
        declined = None  # its traceback has this frame, and the cycle would keep a dropped interpreter until garbage collection
    return False


def _reset_node(context: KernelContext, node: Node) -> None:
    """Undo what the last `prepare` set for the node's tensors: allocations, temporaries and in-place inputs."""
    context.were_dynamic.clear()
    for tensor in node.outputs:  # DYNAMIC and COMPUTED are set by `prepare`, and valid until the next one
        allocation = tensor.allocation
        if allocation is _DYNAMIC:
            context.were_dynamic.add(tensor)
            # An output of a delegate's kernel stays dynamic, as the replaced node was, until that kernel sets its shape.
            if node.delegate is None:
                tensor.allocation = _ARENA
        elif allocation is _COMPUTED:
            tensor.allocation = _ARENA
    if node.temporaries:
        for tensor in node.temporaries:
            context.session.memory.release(tensor)
        node.temporaries = []
    node.in_place, node.main = (), None


def propagate_shapes(context: KernelContext, plan: Sequence[int] | None = None) -> Tensor | None:
    """Shape propagation: prepare the nodes in order, without memory, so that a delegate sees the shapes for the current inputs.

    Args:
        context: the subgraph's context.
        plan: indices of the nodes; the execution plan unless given.

    Returns:
        The first tensor of dynamic shape, None if there is none. Tensors computed from it are dynamic too.

    Raises:
        PrepareError: a kernel refused its node.
    """
    subgraph, session = context.subgraph, context.session
    unknown: set[Tensor | None] = set()
    first: Tensor | None = None
    session.enter(subgraph)
    try:
        subgraph.find_last_uses()
        for tensor in subgraph.variables:
            allocate_own(session.memory, tensor)
        for index in subgraph.execution_plan if plan is None else plan:
            node = subgraph.nodes[index]
            if unknown.intersection(node.inputs):
                made = [tensor for tensor in node.outputs if not tensor.is_variable]
                for tensor in made:
                    context.set_dynamic(tensor)
                unknown.update(made)
            elif node.registration is not None and not is_folded(subgraph, node):
                try:
                    prepared = prepare_or_defer(context, node)
                except UnservedNodeError:
                    if node.op is not BuiltinOperator.CUSTOM:
                        raise
                    continue  # a delegate may serve it
                for tensor in () if prepared else node.outputs:
                    context.set_dynamic(tensor)
                if not prepared or not fold(context, node):
                    unknown.update(tensor for tensor in node.outputs if tensor.is_dynamic)
                    first = first or next((tensor for tensor in node.outputs if tensor.is_dynamic), None)
            # else a custom op that only a delegate may serve: its outputs keep the file's shapes
    finally:
        session.leave()
        subgraph.invalidate()
    return first
