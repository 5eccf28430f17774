"""Growth of Python's memory over many runs, as `tracemalloc` counts it."""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable

__all__ = ["RUNS", "memory_growth"]

#: Runs in each half of a measurement.
RUNS = 400
#: Seconds after which a half of slow runs ends.
_LONGEST_HALF = 1.0
#: Empties Python's cache of looked-up attributes, which keeps the last 4,096 names: an engine written in C may make each one anew.
_forget_names: Callable[[], object] = getattr(sys, "_clear_internal_caches", getattr(sys, "_clear_type_cache", object))


def memory_growth(invoke: Callable[[], None]) -> int:
    """Return the bytes by which memory grew from a first half of many runs to the second: allocated, or at a run's peak."""
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        first = _measure(invoke, RUNS)
        second = _measure(invoke, RUNS)
    finally:
        if ours:
            tracemalloc.stop()
    return max(second[0] - first[0], second[1] - first[1])


def _measure(invoke: Callable[[], None], count: int) -> tuple[int, int]:
    """Run `count` times and once more; return the bytes that are allocated in between, and the peak of the last run."""
    end = time.monotonic() + _LONGEST_HALF
    for _ in range(count):
        invoke()
        if time.monotonic() > end:
            break
    gc.collect()
    _forget_names()
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    invoke()
    return left, tracemalloc.get_traced_memory()[1]
