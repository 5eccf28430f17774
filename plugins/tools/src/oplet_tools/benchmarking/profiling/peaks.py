"""The machine's peaks: the most operations and bytes per second that numpy reaches on it, for a roofline."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oplet_tools.benchmarking.profiling.spread import Spread

__all__ = ["Peaks", "measure_peaks"]

#: Rows of the matrices, which fit a cache; bytes of the arrays that are copied, which do not, and of the pieces in which they are, so that another
#: process seldom comes between; seconds for each measurement.
_ROWS, _BYTES, _PIECE, _SECONDS = 384, 1 << 26, 1 << 20, 0.25


@dataclass(frozen=True)
class Peaks:
    """The highest throughputs that were reached on this machine, with the threads that BLAS may use."""

    gflops: float  #: Operations on float32 per nanosecond in a product of matrices, a multiply-add being two.
    gbytes: float  #: Bytes read and written per nanosecond where an array that fits no cache is copied, by one thread.

    def attainable(self, intensity: float) -> float:
        """Return the roofline, in operations per nanosecond, at an arithmetic intensity in operations per byte.

        Examples:
            >>> Peaks(100.0, 10.0).attainable(2.0), Peaks(100.0, 10.0).attainable(50.0)
            (20.0, 100.0)
        """
        return min(self.gflops, intensity * self.gbytes)

    def bound(self, intensity: float) -> str:
        """Return what bounds a node of this arithmetic intensity: "memory" or "compute"."""
        return "memory" if intensity * self.gbytes < self.gflops else "compute"


@functools.cache
def measure_peaks() -> Peaks:
    """Measure the machine's highest throughputs, once per process; takes about half a second."""
    a, b, c = (np.full((_ROWS, _ROWS), 0.5, np.float32) for _ in range(3))
    product = _seconds(lambda: np.matmul(a, b, out=c))
    source, target = (np.ones(_BYTES, np.uint8).reshape(-1, _PIECE) for _ in range(2))
    pieces = itertools.cycle(zip(target, source))
    copy = _seconds(lambda: np.copyto(*next(pieces)))
    return Peaks(2 * _ROWS**3 / product / 1e9, 2 * _PIECE / copy / 1e9)


def _seconds(run: Callable[[], object]) -> float:
    """Time a call many times; return the lower quartile of the seconds, which other processes affect least."""
    clock = time.perf_counter
    run()
    seconds: list[float] = []
    end = clock() + _SECONDS
    while (start := clock()) < end or not seconds:
        run()
        seconds.append(max(clock() - start, 1e-9))
    return Spread.of(seconds).low
