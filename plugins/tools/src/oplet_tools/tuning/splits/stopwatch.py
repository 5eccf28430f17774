"""Stopwatch that leaves out the time in which this thread was ready to run and other processes had the cores."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

__all__ = ["seconds_of", "waited"]

#: Linux counts there: nanoseconds on a core, nanoseconds of waiting for one, and turns.
_COUNTS = "/proc/thread-self/schedstat"


def waited() -> float:
    """Return the seconds that this thread has waited for a core since it began; 0 where the system does not count them."""
    with suppress(OSError, ValueError, IndexError), open(_COUNTS, encoding="ascii") as counts:
        return int(counts.read().split()[1]) * 1e-9
    return 0.0


def seconds_of(call: Callable[[], object]) -> float:
    """Call a function; return the seconds that it took, without most of those in which this thread waited for a core.

    Threads that the call waits for may wait as well; that counts.
    """
    begun = time.perf_counter()
    before = waited()
    start = time.perf_counter()
    call()
    end = time.perf_counter()
    delay = waited() - before
    # The thread may have waited while it looked at the counts, so that they are part of the time that the delay is taken from.
    return min(end - start, time.perf_counter() - begun - delay)
