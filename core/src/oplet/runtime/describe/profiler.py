"""The profiler: the time of each node's run."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Event", "Profiler"]


class Event(NamedTuple):
    """One run of one node.

    Attributes:
        subgraph: the subgraph's index.
        node: the node's index in it.
        op: the op's name.
        label: the kernel's profiling string; the op's name where it has none.
        start: when the run began, in seconds of `time.perf_counter`.
        seconds: the duration.
        origin: the composite from whose decomposition the node was inlined; "" for a node of the model itself.
    """

    subgraph: int
    node: int
    op: str
    label: str
    start: float
    seconds: float
    origin: str = ""


class Profiler:
    """Collects an `Event` for each run of a node; pass it to `Interpreter(profiler=...)`.

    `oplet_tools.benchmarking.profile.summarize` makes a summary of the events, `oplet_tools.benchmarking.trace` a trace that browsers show.

    Args:
        enabled: whether runs are timed from the start.

    Attributes:
        events: the events in order.
        enabled: whether runs are timed, which costs about a microsecond a node. May be changed between runs.
        reads_tensors: whether `record` reads tensors that nodes write: each node then runs by itself, and has written its outputs.

    Examples:
        >>> from oplet import Interpreter, Profiler
        >>> profiler = Profiler()
        >>> interpreter = Interpreter("model.tflite", profiler=profiler)  # doctest: +SKIP
        >>> interpreter.invoke()  # doctest: +SKIP
        >>> profiler.by_op()  # doctest: +SKIP
    """

    reads_tensors = False

    def __init__(self, enabled: bool = True) -> None:
        self.events: list[Event] = []
        self.enabled = enabled

    def record(self, event: Event) -> None:
        """Append an event; a subclass may do something else with it."""
        self.events.append(event)

    def clear(self) -> None:
        """Discard all events."""
        self.events.clear()

    def by_op(self) -> dict[str, tuple[int, float]]:
        """Return the number of runs and their total seconds by label, the most seconds first."""
        totals: dict[str, tuple[int, float]] = {}
        for event in self.events:
            count, seconds = totals.get(event.label, (0, 0.0))
            totals[event.label] = count + 1, seconds + event.seconds
        return dict(sorted(totals.items(), key=lambda item: -item[1][1]))
