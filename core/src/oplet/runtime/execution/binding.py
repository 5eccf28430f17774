"""Binding: from a node whose tensors have their memory to the thunk that runs it; the exchange of that memory for the application's, to
which the nodes are bound anew; and the run of a segment's thunks, or steps.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise

import numpy as np

from oplet.errors import CancelledError, DeadlineError, InvokeError, OpletError, PluginError, PrepareError, StateError, failures
from oplet.model.reachability import called_subgraphs
from oplet.ops.context import Declined, EnsureError, Node, UnfitError
from oplet.ops.node import Thunk
from oplet.ops.serving.joining import StalePlanError
from oplet.ops.tensor import Allocation, Array, Tensor
from oplet.runtime.execution.checks import with_write_check
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.memory.accounting import MemoryAccount
from oplet.runtime.memory.values import with_readable_inputs
from oplet.runtime.subgraph import Segment
from oplet.schema.enums import TensorType

__all__ = ["PASSED_ON", "bind_node", "bind_segment", "exchange_memory", "run_joined", "run_segment"]


def bind_segment(context: KernelContext, segment: Segment, start: int = 0) -> None:
    """Bind each node of a segment (part of the plan, from position `start` on) to its arrays; raises the errors of `bind_node`."""
    subgraph = context.subgraph
    has_computed = subgraph.folded or context.session.memory.unpacks  # else no constant can be let go
    plan = subgraph.execution_plan[: segment.end] if has_computed and not start else ()
    positions = {index: at for at, index in enumerate(plan)}
    has_buffers = any(tensor.delegate is not None for tensor in subgraph.tensors)
    for node in segment.nodes:
        thunk = bind_node(context, node)
        segment.thunks.append(with_readable_inputs(context, node, thunk) if has_buffers else thunk)
        if positions and node.delegate is None and (kernel := node.registration) is not None and kernel.bind is not None:
            context.let_go(node, positions[node.index])


def bind_node(context: KernelContext, node: Node) -> Thunk:
    """Return the thunk that runs a node: what its kernel's `bind` returns, or a call of its `invoke`.

    Where `bind` refuses the node, for the values or sizes of its inputs, the thunk raises that error when it is called: the node
    may be in a branch that is never taken, and LiteRT checks these only at run time.

    Raises:
        StateError: the node has no kernel, or its kernel has neither `bind` nor `invoke`.
        PrepareError: `bind` fails for any other reason.
    """
    thunk = _bound(context, node)
    for tensor in node.outputs:
        if tensor.dtype.hasobject:
            strings = [tensor for tensor in node.outputs if tensor.type is TensorType.STRING]
            return partial(_run_counted, thunk, strings, context.session.memory) if strings else thunk
    return thunk


def _bound(context: KernelContext, node: Node) -> Thunk:
    registration, session = node.registration, context.session
    memory = session.memory
    if registration is None:
        raise StateError(f"Encountered an unresolved custom op. Did you miss a custom op or delegate? {node} has no kernel.")
    outer, memory.charged_to = memory.charged_to, node
    try:
        if registration.bind is not None:
            thunk = registration.bind(context, node)
            if not callable(thunk):
                raise PluginError(f"The kernel's bind returns {thunk!r} in place of a function that runs the node")
            return with_write_check(node, thunk) if session.checks else thunk
    except EnsureError as error:
        if isinstance(error, Declined):
            raise context.node_error(PrepareError, node, error, "failed to prepare") from error
        return partial(_refuse, str(error))
    except failures() as error:
        raise context.node_error(PrepareError, node, error, "failed to prepare") from error
    finally:
        memory.charged_to = outer
    if registration.invoke is None:
        raise StateError(f"{node} has neither invoke nor bind.")
    thunk = partial(registration.invoke, context, node)
    return with_write_check(node, thunk) if session.checks else thunk


def _refuse(message: str) -> None:
    """Raise, when a node runs, the error with which its kernel's `bind` refused it."""
    raise UnfitError(message)


def _run_counted(thunk: Thunk, strings: Sequence[Tensor], memory: MemoryAccount) -> None:
    """Run a node, and count the strings in its outputs in the memory account, which checks the limits."""
    thunk()
    for tensor in strings:
        if tensor.has_data:
            memory.charge_strings(tensor)


def exchange_memory(context: KernelContext, exchanged: dict[Tensor, Array], arrays: Mapping[int, Array | None]) -> set[int]:
    """Use these arrays as tensors' memory until the subgraph is prepared again; rebind the nodes that read or write the tensors.

    Args:
        context: the context of the subgraph's kernels.
        exchanged: receives the runtime's own array of each tensor that uses another one now.
        arrays: by the index of an input or output, its new memory; None for the runtime's own, with the value that the tensor has.

    Returns:
        The indices of the tensors that use the requested memory. Not moved are constants, variables, strings, tensors that a delegate's
        kernel reads or writes, tensors whose arrays do not fit, and all tensors of a subgraph that is not prepared, is called by others, or
        has dynamic shapes.

    Raises:
        PrepareError: a kernel cannot be bound to the arrays; the subgraph has to be prepared again.
    """
    subgraph = context.subgraph
    if not _is_static(context):
        return set()
    delegated = {
        tensor for index in subgraph.execution_plan if (node := subgraph.nodes[index]).delegate for tensor in _tensors(node)
    }
    movable = {*subgraph.inputs, *subgraph.read}
    found: set[int] = set()
    moved: set[Tensor] = set()
    for index, array in arrays.items():
        tensor = subgraph.tensors[index]
        if index not in movable or tensor.allocation is not Allocation.ARENA or tensor in delegated or not tensor.has_data:
            continue
        new = exchanged.get(tensor, tensor.data) if array is None else array
        if new is not tensor.data:
            if not _fits(new, tensor):
                continue
            if array is None:
                np.copyto(new, tensor.data)
            exchanged.setdefault(tensor, tensor.data)
            tensor.set_memory(new)
            moved.add(tensor)
        found.add(index)
    if moved:
        _bind_anew(context, moved)
    return found


def _is_static(context: KernelContext) -> bool:
    """Return whether the subgraph is prepared as one segment, which only the application runs."""
    subgraph, session = context.subgraph, context.session
    if not subgraph.ready or subgraph.is_dynamic or len(subgraph.segments) != 1:
        return False
    return len(session.subgraphs) == 1 or subgraph.index not in called_subgraphs(session.model.lazy_root)


def _fits(array: Array, tensor: Tensor) -> bool:
    flags = array.flags
    same = array.dtype == tensor.dtype and array.shape == tensor.shape and not array.dtype.hasobject
    return same and flags.c_contiguous and flags.writeable and flags.aligned


def _tensors(node: Node) -> Iterator[Tensor]:
    """Yield the tensors that a node, and those that it absorbs, read and write."""
    for each in (node, *node.absorbed):
        for tensor in chain(each.inputs, each.outputs):
            if tensor is not None:
                yield tensor


def _bind_anew(context: KernelContext, moved: set[Tensor]) -> None:
    subgraph = context.subgraph
    [segment] = subgraph.segments
    context.session.enter(subgraph)
    try:
        for position, node in enumerate(segment.nodes):
            if not moved.isdisjoint(_tensors(node)):
                segment.thunks[position] = with_readable_inputs(context, node, bind_node(context, node))
    except BaseException:
        subgraph.invalidate()
        raise
    finally:
        context.session.leave()
    segment.unjoin()


#: What thunks raise that is no failure of their nodes: it ends the run, or has the runtime begin it again.
PASSED_ON = CancelledError, DeadlineError, StalePlanError

#: The clock of the first run: this thread's processor time, so that a thunk does not seem long because other processes were in its way;
#: or, where the system counts that in ticks or has no such clock (a browser), the time.
_CLOCK = getattr(time, "thread_time", time.perf_counter)
if _CLOCK is not time.perf_counter and time.get_clock_info("thread_time").resolution >= 1e-5:
    _CLOCK = time.perf_counter


def run_segment(context: KernelContext, segment: Segment) -> None:
    """Run a segment (part of the plan): call its nodes' thunks in order, or the compiled steps into which they were fused.

    Raises:
        CancelledError: another thread called `cancel`.
        DeadlineError: the run took longer than `max_seconds`.
        InvokeError: a kernel failed.
        StalePlanError: a fused node's output has another shape than it was prepared for.
    """
    session = context.session
    meter, profiler = session.meter, session.profiler
    if meter.has_deadline or (profiler is not None and profiler.enabled):
        _run_timed(context, segment)
        return
    if segment.seconds is None:
        _run_first(context, segment)
        return
    stop = meter.reasons
    if stop:
        meter.check()
    steps, firsts = segment.steps or segment.join(segment.seconds, context.num_threads)
    remaining = iter(steps)
    try:
        for step in remaining:
            step()
            if stop:
                meter.check()
    except PASSED_ON:
        raise
    except failures() as error:
        number = len(steps) - operator.length_hint(remaining) - 1
        raise _failure(context, segment, firsts[number] + getattr(steps[number], "failed_at", 0), error) from error


def run_joined(context: KernelContext, segment: Segment) -> None:
    """Call the one step into which a segment's nodes were fused, if the segment has nodes; raises the errors of `run_segment`."""
    if segment.steps is None:
        return
    reasons = context.session.meter.reasons
    for step in segment.steps[0]:
        try:
            step()
        except PASSED_ON:
            raise
        except failures() as error:
            raise _failure(context, segment, segment.steps[1][0] + getattr(step, "failed_at", 0), error) from error
        if reasons:
            context.session.meter.check()


def _run_first(context: KernelContext, segment: Segment) -> None:
    """Run each node's thunk and note how long it takes; neighbours are fused in the next run, so that the first does not wait."""
    clock, meter = _CLOCK, context.session.meter
    times = [clock()]
    meter.check()
    try:
        for thunk in segment.thunks:
            thunk()
            times.append(clock())
            meter.check()
    except PASSED_ON:
        raise
    except failures() as error:
        raise _failure(context, segment, len(times) - 1, error) from error
    segment.seconds = [end - start for start, end in pairwise(times)]


def _run_timed(context: KernelContext, segment: Segment) -> None:
    """Run the thunks and read the clock after each node, for the deadline and the profiler."""
    from oplet.runtime.describe.profiler import Event

    clock = time.perf_counter
    session = context.session
    meter, profiler = session.meter, session.profiler
    remaining = iter(segment.thunks)
    nodes = iter(segment.nodes)
    meter.check()
    try:
        for thunk in remaining:
            start = clock()
            thunk()
            seconds = clock() - start
            node = next(nodes)
            if profiler is not None and profiler.enabled and session.profiles(node):
                label, shown = node.profiling_string(context), node.main or node
                profiler.record(Event(context.subgraph.index, shown.index, shown.op_name, label, start, seconds, shown.origin))
            meter.check()
    except PASSED_ON:
        raise
    except failures() as error:
        raise _failure(context, segment, len(segment.thunks) - operator.length_hint(remaining) - 1, error) from error


def _failure(context: KernelContext, segment: Segment, position: int, error: BaseException) -> OpletError:
    """Return the error for `error`, which the node at this position of the segment raised."""
    return context.node_error(InvokeError, segment.nodes[position], error, "failed to invoke")
