"""What each node costs, from Python."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Event", "Profiler"]


class Event(NamedTuple):
    """One run of one node.

    Attributes:
        subgraph: the subgraph's index.
        node: the node's index in it.
        op: the op's name.
        label: what the kernel calls itself; the op's name when it says nothing.
        start: seconds, on `time.perf_counter`'s clock.
        seconds: how long it took.
    """

    subgraph: int
    node: int
    op: str
    label: str
    start: float
    seconds: float


class Profiler:
    """Collects an `Event` per node run; give it to `Interpreter(profiler=...)`.

    `oplet.tools.benchmarking.profile.summarize` makes a summary of the events, `oplet.tools.benchmarking.trace` a trace that browsers show.

    Attributes:
        events: what was collected, in order.
        enabled: whether runs are looked at; they cost a microsecond more a node then. May be changed between runs.
    """

    def __init__(self, enabled: bool = True) -> None:
        self.events: list[Event] = []
        self.enabled = enabled

    def record(self, event: Event) -> None:
        """Take one event."""
        self.events.append(event)

    def clear(self) -> None:
        """Forget everything."""
        self.events.clear()

    def by_op(self) -> dict[str, tuple[int, float]]:
        """Runs and seconds by label, the costliest first."""
        totals: dict[str, tuple[int, float]] = {}
        for event in self.events:
            count, seconds = totals.get(event.label, (0, 0.0))
            totals[event.label] = count + 1, seconds + event.seconds
        return dict(sorted(totals.items(), key=lambda item: -item[1][1]))
