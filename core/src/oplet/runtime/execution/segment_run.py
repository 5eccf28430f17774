"""The run of a segment: its thunks in order, until one fails, or a deadline or `cancel` ends the run."""

from __future__ import annotations

import operator
import time
from itertools import pairwise

from oplet.errors import CancelledError, DeadlineError, InvokeError, OpletError, failures
from oplet.ops.serving.absorbing import UnforeseenShapeError
from oplet.ops.serving.joining import RunAnew
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.subgraph import Segment

__all__ = ["PASSED_ON", "run_joined", "run_segment"]

#: What thunks raise that is no failure of their nodes: it ends the run, or has the runtime begin it again.
PASSED_ON = CancelledError, DeadlineError, RunAnew, UnforeseenShapeError

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
        UnforeseenShapeError: a fused node's output has another shape than it was prepared for.
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
