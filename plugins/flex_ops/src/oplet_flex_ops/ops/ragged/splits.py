"""Checked row splits of ragged tensors, and positions derived from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oplet import ensure
from oplet.kernels.arrays import Array
from oplet_flex_ops.kernel import reserve

__all__ = ["ensure_splits", "row_numbers_of", "rows_at"]


def ensure_splits(levels: Sequence[Array], count: int) -> None:
    """Raise an error unless splits ascend from 0 to the row count of the next level, or to `count` at the last level.

    Raises:
        EnsureError: the splits do not.
    """
    below = [level.size - 1 for level in levels[1:]] + [count]
    for number, (level, rows) in enumerate(zip(levels, below)):
        ensure(
            level.size > 0 and level[0] == 0 and level[-1] == rows and bool((level[1:] >= level[:-1]).all()),
            f"the row splits of level {number} do not ascend from 0 to {rows}, the number of rows or values below.",
        )


def rows_at(starts: Array, lengths: Array) -> NDArray[np.int64]:
    """Return start, start + 1, ... for each of many rows of the given lengths, concatenated."""
    total = int(lengths.sum(dtype=np.int64))
    reserve((total,), 32)
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.arange(total) + np.repeat(starts.astype(np.int64) - (ends - lengths), lengths)


def row_numbers_of(splits: Array) -> NDArray[np.int64]:
    """Return the row number of each value, from row splits."""
    return np.repeat(np.arange(splits.size - 1), np.diff(splits))
