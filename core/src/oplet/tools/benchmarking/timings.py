"""Times of repeated runs, and how two runners' times compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Ratio", "Timings"]


@dataclass(frozen=True)
class Timings:
    """The seconds of repeated runs.

    Attributes:
        count: how many runs.
        first: of the first.
        min: of the shortest.
        max: of the longest.
        mean: the average.
        std: the standard deviation.
        p50: half of the runs took no longer, the median; p90, p95 and p99: of 100 runs so many took no longer.
    """

    count: int
    first: float
    min: float
    max: float
    mean: float
    std: float
    p50: float
    p90: float
    p95: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timings:
        """The timings of one run or more."""
        values = np.asarray(seconds, np.float64)
        percentiles = np.percentile(values, [50, 90, 95, 99]).tolist()
        numbers = (float(values[0]), float(values.min()), float(values.max()), float(values.mean()), float(values.std()))
        return cls(len(values), *numbers, *percentiles)


@dataclass(frozen=True)
class Ratio:
    """One runner's time over another's, pair by pair of runs that stood side by side.

    Attributes:
        pairs: how many pairs.
        median: half of the ratios are no larger.
        low: a quarter of them is no larger.
        high: three quarters are no larger.
        min: the smallest.
        max: the largest.
    """

    pairs: int
    median: float
    low: float
    high: float
    min: float
    max: float

    @classmethod
    def of(cls, seconds: Sequence[float], others: Sequence[float]) -> Ratio:
        """The ratios of one pair or more; the clock's grain stands in for times of zero."""
        ratios = np.maximum(seconds, 1e-9) / np.maximum(others, 1e-9)
        median, low, high = np.percentile(ratios, [50, 25, 75]).tolist()
        return cls(len(ratios), median, low, high, float(ratios.min()), float(ratios.max()))
