"""Statistics of repeated runs, and of the ratio of two runners' times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Ratio", "Timings"]


@dataclass(frozen=True)
class Timings:
    """Statistics of repeated runs, in seconds."""

    count: int  #: The number of runs.
    first: float  #: Time of the first run.
    min: float  #: Time of the shortest run.
    max: float  #: Time of the longest run.
    mean: float
    std: float  #: The standard deviation.
    p25: float  #: The lower quartile.
    p50: float  #: The median.
    p75: float  #: The upper quartile; p5, p90, p95 and p99 are percentiles too.
    p90: float
    p95: float
    p99: float
    p5: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timings:
        """Compute the statistics of at least one run."""
        values = np.asarray(seconds, np.float64)
        percentiles = np.percentile(values, [25, 50, 75, 90, 95, 99, 5]).tolist()
        numbers = (float(values[0]), float(values.min()), float(values.max()), float(values.mean()), float(values.std()))
        return cls(len(values), *numbers, *percentiles)


@dataclass(frozen=True)
class Ratio:
    """Statistics of the ratio of two runners' times, over pairs of neighbouring runs."""

    pairs: int  #: The number of pairs.
    median: float
    low: float  #: The lower quartile.
    high: float  #: The upper quartile.
    min: float  #: The smallest ratio.
    max: float  #: The largest ratio.

    @classmethod
    def of(cls, seconds: Sequence[float], others: Sequence[float]) -> Ratio:
        """Compute the statistics of `seconds / others`, at least one pair; times of 0 count as the clock's resolution."""
        ratios = np.maximum(seconds, 1e-9) / np.maximum(others, 1e-9)
        median, low, high = np.percentile(ratios, [50, 25, 75]).tolist()
        return cls(len(ratios), median, low, high, float(ratios.min()), float(ratios.max()))
