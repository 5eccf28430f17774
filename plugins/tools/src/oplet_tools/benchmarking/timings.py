"""Statistics of repeated runs, and of the ratio of two runners' times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Ratio", "Timings"]


@dataclass(frozen=True)
class Timings:
    """Statistics of repeated runs, in seconds.

    Attributes:
        count: the number of runs.
        first: time of the first run.
        min: time of the shortest run.
        max: time of the longest run.
        mean: the mean.
        std: the standard deviation.
        p25: the lower quartile.
        p50: the median.
        p75: the upper quartile; p5, p90, p95 and p99 are percentiles too.
    """

    count: int
    first: float
    min: float
    max: float
    mean: float
    std: float
    p25: float
    p50: float
    p75: float
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
    """Statistics of the ratio of two runners' times, over pairs of neighbouring runs.

    Attributes:
        pairs: the number of pairs.
        median: the median ratio.
        low: the lower quartile.
        high: the upper quartile.
        min: the smallest ratio.
        max: the largest ratio.
    """

    pairs: int
    median: float
    low: float
    high: float
    min: float
    max: float

    @classmethod
    def of(cls, seconds: Sequence[float], others: Sequence[float]) -> Ratio:
        """Compute the statistics of `seconds / others`, at least one pair; times of 0 count as the clock's resolution."""
        ratios = np.maximum(seconds, 1e-9) / np.maximum(others, 1e-9)
        median, low, high = np.percentile(ratios, [50, 25, 75]).tolist()
        return cls(len(ratios), median, low, high, float(ratios.min()), float(ratios.max()))
