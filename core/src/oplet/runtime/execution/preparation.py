"""Preparation: shapes, types and scratch of a node for the inputs of now, asked of its kernel."""

from __future__ import annotations

from oplet.errors import PrepareError, failures
from oplet.ops.context import Declined, Node
from oplet.ops.tensor import Allocation
from oplet.runtime.execution.checks import check_inputs, check_prepared
from oplet.runtime.execution.declining import hand_on
from oplet.runtime.execution.folding import reads_folded_shapes
from oplet.runtime.execution.kernel_context import KernelContext

__all__ = ["prepare_node", "prepare_unless_it_waits"]

_ARENA, _COMPUTED, _DYNAMIC = Allocation.ARENA, Allocation.COMPUTED, Allocation.DYNAMIC


def prepare_unless_it_waits(context: KernelContext, node: Node) -> bool:
    """Prepare a node; False if it is refused and has to be prepared again, and then be refused, in `invoke`."""
    try:
        prepare_node(context, node)
    except PrepareError:
        if node.delegate is not None or not reads_folded_shapes(context.subgraph, node):
            raise
        return False
    return True


def prepare_node(context: KernelContext, node: Node) -> None:
    """Have a node's kernel prepare it; where that one declines, the next one in the order of precedence.

    Raises:
        PrepareError: the kernel refuses the node, or nobody is left to take it.
    """
    if node.providers is not None:
        node.providers.restart()
    while not _is_prepared(context, node):
        pass  # somebody declined it, and the next one has it


def _is_prepared(context: KernelContext, node: Node) -> bool:
    _forget_last_time(context, node)
    registration, memory = node.registration, context.session.memory
    if registration is None or registration.prepare is None:
        return True
    context.preparing = True
    inputs, outputs = node.inputs[:], node.outputs[:]
    memory.give_back(node)
    node.charged = None
    outer = memory.plan_for(node)
    declined: Declined | None = None
    try:
        check_inputs(node, memory)
        registration.prepare(context, node)
        check_prepared(node, inputs, outputs)
    except Declined as reason:
        declined = reason
    except failures() as error:
        raise context.explained(PrepareError, node, error, "failed to prepare") from error
    finally:
        context.preparing = False
        memory.plan_for(outer)
    if declined is not None:
        hand_on(context, node, declined)
        return False
    return True


def _forget_last_time(context: KernelContext, node: Node) -> None:
    """Take back what the last preparation said of the node's tensors."""
    context.were_dynamic.clear()
    for tensor in node.outputs:  # what is DYNAMIC or COMPUTED is so until its node is prepared again
        allocation = tensor.allocation
        if allocation is _DYNAMIC:
            context.were_dynamic.add(tensor)
            # Where a delegate replaced the node that said so, no more is known until the delegate's kernel says otherwise.
            if node.delegate is None:
                tensor.allocation = _ARENA
        elif allocation is _COMPUTED:
            tensor.allocation = _ARENA
    if node.temporaries:
        for tensor in node.temporaries:
            context.session.memory.give_back(tensor)
        node.temporaries = []
    node.in_place = ()
