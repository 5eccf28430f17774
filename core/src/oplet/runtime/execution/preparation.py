"""Preparation: of a node, whose kernel checks its inputs, sets its outputs' shapes and types, and requests scratch memory; and of a
segment, whose nodes are prepared, folded, given memory by one plan, and bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from oplet.errors import InvokeError, PrepareError, UnservedNodeError, failures
from oplet.model.reachability import entry_subgraphs
from oplet.ops.context import Declined, Node, UnfitError
from oplet.ops.serving.joining import absorb
from oplet.ops.tensor import Allocation, Tensor
from oplet.runtime.execution.binding import bind_segment
from oplet.runtime.execution.checks import check_inputs, check_prepared
from oplet.runtime.execution.fallback import fall_back, initialize_provider, restart
from oplet.runtime.execution.folding import expand, fold, is_folded, reads_folded_shapes
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.execution.session import Session
from oplet.runtime.memory.allocation import SegmentAllocation, allocate_own
from oplet.runtime.subgraph import Segment, Subgraph
from oplet.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["allocate_first", "allocate_segment", "prepare_node", "prepare_or_defer", "propagate_shapes"]

_ARENA, _COMPUTED, _DYNAMIC = Allocation.ARENA, Allocation.COMPUTED, Allocation.DYNAMIC
#: Operators that do nothing but call subgraphs, whose nodes are looked at on their own.
_CALLS = (BuiltinOperator.WHILE, BuiltinOperator.IF)


def allocate_first(context: KernelContext, arena_there: NDArray[np.uint8] | None, beyond: frozenset[int] = frozenset()) -> bool:
    """Allocate the first segment (part of the plan with known shapes); False to try again with less fusion.

    Args:
        context: the subgraph's context.
        arena_there: memory laid out by the same plan, to be used with the values in it; None for new memory.
        beyond: the indices of nodes that are not fused this time, as they come after the segment.
    """
    subgraph, session = context.subgraph, context.session
    absorption = subgraph.absorption
    absorption.end()
    subgraph.restore_order()
    if not (session.checks or any(session.kept)):
        _absorb(subgraph, lambda: _can_restart(session), beyond)
    context.readers = None
    subgraph.find_last_uses()
    try:
        later = allocate_segment(context, 0, arena_there=arena_there)
    except PrepareError:
        if not absorption.nodes:
            raise
        refused = context.asked
        # The first that refuses is set apart. Where another one does, too, or a node that absorbs none, all are.
        apart = [refused] if refused in absorption.nodes and not absorption.apart else absorption.nodes
        absorption.apart.update(node.index for node in apart)
        return False
    finally:
        context.asked = None
    return allocate_first(context, arena_there, beyond | later) if later else True


def _absorb(subgraph: Subgraph, restarts: Callable[[], bool], beyond: frozenset[int]) -> None:
    """Let kernels compute producers of their nodes too (absorb them), which then come right before these in the plan.

    Args:
        subgraph: the subgraph, in which no node absorbs another one yet.
        restarts: returns whether a run may be aborted and restarted, as absorbing may demand.
        beyond: the indices of nodes that absorb none this time.
    """
    nodes = [subgraph.nodes[index] for index in subgraph.execution_plan]
    absorption, read = subgraph.absorption, [subgraph.tensors[index] for index in subgraph.read]
    # A delegate's kernel may run nodes in an order and with memory of its own.
    absorption.nodes = absorb(nodes, read, absorption.apart | beyond, restarts, alone=not subgraph.delegated.kernels)
    if absorption.nodes:
        moved = absorption.absorbed
        subgraph.reorder([other.index for node in nodes if node not in moved for other in (*node.absorbed, node)])


def _can_restart(session: Session) -> bool:
    """Return whether a run may be aborted and restarted: it changes nothing but the values of tensors."""
    if len(entry_subgraphs(session.model.lazy_root)) > 1:
        return False
    for subgraph in session.subgraphs:
        if subgraph.variables:
            return False
        for index in subgraph.execution_plan:
            node = subgraph.nodes[index]
            if node.op not in _CALLS and (node.registration is None or not node.registration.pure):
                return False
    return True


def allocate_segment(
    context: KernelContext, start: int, *, first: bool = True, arena_there: NDArray[np.uint8] | None = None
) -> set[int]:
    """Prepare, fold, plan and bind from position `start` of the plan to the first node with a dynamic output.

    Args:
        context: the subgraph's context.
        start: the position in the plan at which the segment begins.
        first: whether the segment that begins at position 0 is the first one, which has the inputs' memory.
        arena_there: memory laid out by the same plan, to be used with the values in it; None for new memory.

    Returns:
        The indices of fused nodes that come after the first segment; if there are any, nothing was allocated.
    """
    subgraph, session = context.subgraph, context.session
    context.offered.clear()
    if start or not first:  # nodes that were refused in `allocate` are not asked again here
        subgraph.absorption.end({subgraph.nodes[index] for index in subgraph.execution_plan[:start]})
    allocation = SegmentAllocation(subgraph, session.memory, preserve_all=session.preserve_all_tensors)
    if start == 0 and first:
        for index in subgraph.inputs:
            allocation.request_input(subgraph.tensors[index])
        for tensor in subgraph.variables:
            allocate_own(session.memory, tensor)
        subgraph.reset_variables()
    segment = _prepare_segment(context, start, allocation, late=start > 0 or not first)
    # What an unprepared node absorbs was moved to it, out of the segment: it would be refused later than by itself.
    later = subgraph.absorption.indices.difference(subgraph.execution_plan[: segment.end]) if first else set()
    if later:
        return later
    allocation.allocate(segment, context.offered, session.subgraphs, arena_there)
    context.offered.clear()
    bind_segment(context, segment, start)
    subgraph.segments.append(segment)
    return later


def _prepare_segment(context: KernelContext, start: int, allocation: SegmentAllocation, *, late: bool) -> Segment:
    """Prepare the segment's nodes, fold those with constant inputs, and request memory for what the others write.

    Args:
        context: the subgraph's context.
        start: the segment's position in the plan.
        allocation: takes the requests for memory.
        late: whether this is in `invoke`, where no refused node can be put off any more.
    """
    subgraph, session = context.subgraph, context.session
    meter, folded = session.meter, subgraph.folded
    nodes: list[Node] = []
    dynamic: list[Tensor] = []
    absorbed = subgraph.absorption.absorbed
    position = start - 1
    for node in [subgraph.nodes[index] for index in subgraph.execution_plan[start:]]:
        position += 1
        if absorbed and node in absorbed:
            for tensor in node.outputs:
                session.memory.release(tensor)
                tensor.set_memory(None)
                tensor.allocation = _ARENA
            continue
        if folded and not node.absorbed and node.index in folded and is_folded(subgraph, node):
            continue
        if meter.reasons or meter.has_deadline:
            meter.check()
        if late:
            _prepare_late(context, node)
        else:
            context.asked = node
            if not prepare_or_defer(context, node):
                position -= 1
                break
        is_known = not node.absorbed and fold(context, node)
        if not start and (folded or session.memory.unpacks):
            context.let_go(node, position)
        if is_known:
            continue
        nodes.append(node)
        allocation.request_node(node, position)
        for tensor in node.outputs:
            if tensor.allocation is _DYNAMIC:
                dynamic.append(tensor)
        if dynamic:
            break
    return Segment(position + 1 if subgraph.execution_plan else 0, nodes, dynamic)


def prepare_or_defer(context: KernelContext, node: Node) -> bool:
    """Prepare a node; False if its kernel refuses values or sizes that may change until the run, where it is prepared again."""
    try:
        prepare_node(context, node)
    except PrepareError as error:
        if node.delegate is not None or node.absorbed:
            raise
        if not (isinstance(error.__cause__, UnfitError) or reads_folded_shapes(context.subgraph, node)):
            raise
        return False
    return True


def _prepare_late(context: KernelContext, node: Node) -> None:
    """Prepare a node in `invoke`, right before it runs; a refusal of values or sizes is an InvokeError, others a PrepareError."""
    try:
        prepare_node(context, node)
    except PrepareError as error:
        reason = error.__cause__
        if not isinstance(reason, UnfitError):
            raise
        raise context.node_error(InvokeError, node, reason, "failed to invoke") from reason


def prepare_node(context: KernelContext, node: Node) -> None:
    """Prepare a node by the first kernel, in the order of precedence, that does not decline it.

    Raises:
        PrepareError: the kernel refuses the node, or all kernels for the op decline it.
    """
    if node.providers is not None:
        restart(context, node)
    while True:
        kernel = node.registration
        is_open = kernel is None or (kernel.limits is None and kernel.init is None)
        if (is_open or initialize_provider(context, node)) and _try_prepare(context, node):
            return  # else it was declined, and the next provider is tried


def _try_prepare(context: KernelContext, node: Node) -> bool:
    _reset_node(context, node)
    registration, memory = node.registration, context.session.memory
    if node.absorbed and (registration is None or registration.fuses is None):
        raise PrepareError(f"Another kernel than the one that serves {node!r} would compute the nodes before it with it.")
    if registration is None or registration.prepare is None or (registration.expands is not None and expand(context, node)):
        return True
    context.preparing = True
    inputs, outputs = node.inputs[:], node.outputs[:]
    memory.release(node)
    node.charged = None
    outer, memory.charged_to = memory.charged_to, node
    declined: Declined | None = None
    try:
        for each in node.absorbed:
            check_inputs(each, memory)
        check_inputs(node, memory)
        registration.prepare(context, node)
        check_prepared(node, inputs, outputs)
    except Declined as reason:
        declined = reason
    except failures() as error:
        raise context.node_error(PrepareError, node, error, "failed to prepare") from error
    finally:
        context.preparing = False
        memory.charged_to = outer
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
        if allocation is _ARENA:
            continue
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
