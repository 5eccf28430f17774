"""The run of a segment: its thunks in order, until one fails, or a deadline or `cancel` ends the run."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator

from oplet.errors import CancelledError, DeadlineError, InvokeError, OpletError, failures
from oplet.ops.node import Thunk
from oplet.runtime.describe.profiler import Event
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.subgraph import Segment

__all__ = ["run_segment"]


def run_segment(context: KernelContext, segment: Segment) -> None:
    """Call the thunks of a segment.

    Raises:
        CancelledError: another thread called `cancel`.
        DeadlineError: the run took longer than `max_seconds`.
        InvokeError: a kernel failed.
    """
    session = context.session
    meter, profiler = session.meter, session.profiler
    if meter.has_deadline or (profiler is not None and profiler.enabled):
        _run_timed(context, segment)
        return
    stop = meter.reasons
    if stop:
        meter.check()
    remaining = iter(segment.thunks)
    try:
        for thunk in remaining:
            thunk()
            if stop:
                meter.check()
    except (CancelledError, DeadlineError):
        raise  # they end the run, and are no failure of a node
    except failures() as error:
        raise _failure(context, segment, remaining, error) from error


def _run_timed(context: KernelContext, segment: Segment) -> None:
    """Run the thunks and read the clock after each node, for the deadline and the profiler."""
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
                label = node.profiling_string(context)
                profiler.record(Event(context.subgraph.index, node.index, node.op_name, label, start, seconds, node.origin))
            meter.check()
    except (CancelledError, DeadlineError):
        raise  # they end the run, and are no failure of a node
    except failures() as error:
        raise _failure(context, segment, remaining, error) from error


def _failure(context: KernelContext, segment: Segment, remaining: Iterator[Thunk], error: BaseException) -> OpletError:
    """The error of the node whose thunk came from the iterator last."""
    node = segment.nodes[len(segment.thunks) - operator.length_hint(remaining) - 1]
    return context.node_error(InvokeError, node, error, "failed to invoke")
