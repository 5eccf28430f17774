"""Rows of token ids: joining, and begin and end tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["joined", "with_ends"]

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


def joined(codes: Codes, starts: Ints, counts: Ints, rows: Ints, count: int, unknown: int) -> tuple[Codes, Ints]:
    """Concatenate slices of an array of ids; return the ids and their number per row.

    Args:
        codes: the ids that are sliced.
        starts: where each slice begins.
        counts: the length of each slice.
        rows: the row of each slice, ascending.
        count: the number of rows.
        unknown: the id of unknown text; consecutive ones in a row are merged.
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    found = codes[np.arange(total) + np.repeat(starts - ends + counts, counts)]
    sizes = np.bincount(rows, counts, count).astype(np.int64)
    if total:
        again = np.flatnonzero((found[1:] == unknown) & (found[:-1] == unknown)) + 1
        if len(again):
            owners = np.repeat(rows, counts)
            again = again[owners[again] == owners[again - 1]]
            found = np.delete(found, again)
            sizes -= np.bincount(owners[again], minlength=count)
    return found, sizes


def with_ends(codes: Codes, sizes: Ints, first: int | None, last: int | None, reverse: bool) -> tuple[Codes, Ints]:
    """Add a begin and an end id to each row, unless they are None; then reverse each row if `reverse`; return ids and sizes."""
    added = (first is not None) + (last is not None)
    if not added and not reverse:
        return codes, sizes
    wider = sizes + added
    ends = np.cumsum(wider)
    begins = ends - wider
    made = np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + (first is not None)
    made[ends[rows] - 1 - within if reverse else begins[rows] + within] = codes
    if first is not None:
        made[ends - 1 if reverse else begins] = first
    if last is not None:
        made[begins if reverse else ends - 1] = last
    return made, wider
