"""Robust statistics of repeated times: runs that other processes disturbed are recognized and left out.

A process that shares its processor is preempted: a run then lasts a time slice longer, which has nothing to do with what runs. Two signs
give such runs away: the thread was off the processor meanwhile, which its own clock tells, or the run took far longer than most.

A profiler that records, besides each node's time, for how long its thread was off the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oplet import Profiler
from oplet.toolkit import Event

__all__ = ["TIE", "Spread", "disturbed", "ranks", "thread_clock"]


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


#: Times that differ by less than this part are not told apart: repeated measurements on a busy machine order them one way and the other.
TIE = 0.1

#: Time off the processor that counts as a disturbance: seconds, or a part of the run.
_AWAY, _AWAY_PART = 20e-6, 0.02
#: A run is disturbed, too, that takes so many times the lower quartile, and so many seconds more.
_FAR, _FAR_SECONDS = 1.5, 20e-6
#: The coarsest clock of a thread's time that tells anything of single runs, in seconds.
_FINE = 2e-6


@dataclass(frozen=True)
class Spread:
    """Statistics of repeated runs, in seconds; without the disturbed ones except where it says otherwise."""

    median: float
    low: float  #: The lower quartile.
    high: float  #: The upper quartile.
    mad: float  #: The median absolute deviation from the median.
    mean: float  #: The mean of all runs, the disturbed ones included.
    least: float  #: The shortest run.
    count: int  #: The number of all runs.
    disturbed: int  #: The number of runs that other processes disturbed.

    @classmethod
    def of(cls, seconds: Sequence[float], away: Sequence[float] | None = None) -> Spread:
        """Compute the statistics of at least one run.

        Args:
            seconds: the durations.
            away: how long the thread was off the processor in each run; None if that is unknown.
        """
        values = np.asarray(seconds, np.float64)
        marked = disturbed(seconds, away)
        calm = values[~marked]
        low, median, high = np.percentile(calm, [25, 50, 75]).tolist()
        mad = float(np.median(np.abs(calm - median)))
        return cls(median, low, high, mad, float(values.mean()), float(values.min()), len(values), int(marked.sum()))


def disturbed(seconds: Sequence[float], away: Sequence[float] | None = None) -> NDArray[np.bool_]:
    """Return a mask of the runs that other processes disturbed: at most three quarters of all.

    Where every run waits, as for other threads or a device, only waiting longer than usual counts as a disturbance.

    Args:
        seconds: the durations.
        away: how long the thread was off the processor in each run; None if that is unknown.
    """
    values = np.asarray(seconds, np.float64)
    base = np.percentile(values, 25)
    marked: NDArray[np.bool_] = values > max(float(base) * _FAR, float(base) + _FAR_SECONDS)
    if away is not None:
        absent = np.asarray(away, np.float64)
        marked |= absent > np.percentile(absent, 25) + np.maximum(_AWAY, _AWAY_PART * values)
    if len(values) - marked.sum() < max(len(values) / 4, 1):  # next to nothing is left: the shorter half must do
        marked = values > np.median(values)
    return marked


def ranks(seconds: Sequence[float]) -> list[int]:
    """Rank times, 1 for the longest; times that are less than a rank's longest by at most the fraction `TIE` share the rank.

    Examples:
        >>> ranks([1.0, 5.0, 4.9, 2.0])
        [4, 1, 1, 3]
    """
    found = [0] * len(seconds)
    rank, longest = 0, float("inf")
    for place, index in enumerate(sorted(range(len(seconds)), key=lambda index: -seconds[index])):
        if place == 0 or seconds[index] < longest * (1 - TIE):
            rank, longest = place + 1, seconds[index]
        found[index] = rank
    return found


def thread_clock() -> Callable[[], float] | None:
    """Return the clock of the thread's processor time; None where it is too coarse to time single runs."""
    try:
        fine = time.get_clock_info("thread_time").resolution <= _FINE
    except ValueError:  # a system without this clock
        return None
    return time.thread_time if fine else None
