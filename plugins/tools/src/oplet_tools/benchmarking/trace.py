"""Writes a profiler's events in the trace event format, which ui.perfetto.dev and chrome://tracing show.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from oplet import write_atomically
from oplet.toolkit import Event
from oplet_tools.benchmarking.profiling.node_facts import Place

__all__ = ["Span", "trace_events", "write_trace"]

_PROCESS = 1
_THREAD = 1


class Span(NamedTuple):
    """A span of time besides nodes: loading, allocating, an inference."""

    name: str
    start: float  #: Its start in seconds of `time.perf_counter`.
    seconds: float  #: Its duration.


def trace_events(
    events: Sequence[Event], *, spans: Sequence[Span] = (), names: Mapping[Place, str] | None = None, title: str = "oplet"
) -> dict[str, Any]:
    """Convert a profiler's events to a trace, ready for JSON.

    Args:
        events: `Profiler.events`.
        spans: other spans of time; they enclose the nodes that ran meanwhile.
        names: names of the nodes, by (subgraph, node).
        title: the name of the process.
    """
    origin = min([event.start for event in events] + [span.start for span in spans], default=0.0)

    def complete(name: str, category: str, start: float, seconds: float, arguments: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "cat": category,
            "ph": "X",
            "ts": (start - origin) * 1e6,
            "dur": seconds * 1e6,
            "pid": _PROCESS,
            "tid": _THREAD,
            "args": arguments,
        }

    entries = [
        {"name": "process_name", "ph": "M", "pid": _PROCESS, "tid": _THREAD, "args": {"name": title}},
        {"name": "thread_name", "ph": "M", "pid": _PROCESS, "tid": _THREAD, "args": {"name": "nodes"}},
    ]
    entries += [complete(span.name, "oplet", span.start, span.seconds, {}) for span in spans]
    for event in sorted(events, key=lambda event: (event.start, -event.seconds)):
        arguments = {"subgraph": event.subgraph, "node": event.node, "op": event.op}
        if names and (event.subgraph, event.node) in names:
            arguments["outputs"] = names[event.subgraph, event.node]
        entries.append(complete(event.label, "node", event.start, event.seconds, arguments))
    return {"traceEvents": entries, "displayTimeUnit": "ms"}


def write_trace(path: str | os.PathLike[str], trace: Mapping[str, Any]) -> None:
    """Write a trace as JSON, in ASCII."""
    write_atomically(path, json.dumps(trace))
