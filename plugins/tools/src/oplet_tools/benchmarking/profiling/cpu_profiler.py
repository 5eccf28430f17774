"""A profiler that records, besides each node's time, for how long its thread was off the processor."""

from __future__ import annotations

import time

from oplet import Profiler
from oplet.toolkit import Event
from oplet_tools.benchmarking.profiling.spread import thread_clock

__all__ = ["CpuProfiler"]


class CpuProfiler(Profiler):
    """Profiler that records events, and for each event how long the thread was off the processor since the event before.

    Attributes:
        away: for each event, the seconds off the processor since the event before; None where the system does not report them.
    """

    def __init__(self, enabled: bool = True) -> None:
        super().__init__(enabled)
        self._clock = thread_clock()
        self.away: list[float] | None = None if self._clock is None else []
        self._then = self._worked = 0.0

    def begin(self) -> None:
        """Mark the start of an inference: time off the processor before it is not charged to its first node."""
        if self._clock is not None:
            self._then, self._worked = time.perf_counter(), self._clock()

    def record(self, event: Event) -> None:
        """Append an event; called right after the event's node has run."""
        super().record(event)
        if self._clock is not None and self.away is not None:
            now, worked = time.perf_counter(), self._clock()
            self.away.append(max((now - self._then) - (worked - self._worked), 0.0))
            self._then, self._worked = now, worked

    def clear(self) -> None:
        """Discard all events."""
        super().clear()
        if self.away is not None:
            self.away.clear()
