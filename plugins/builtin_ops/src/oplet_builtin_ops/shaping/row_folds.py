"""Reductions along the last axis. numpy takes about 30 ns per row however short, so short rows are reduced column by column."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from oplet.kernels.arrays import Array, Thunk
from oplet_builtin_ops.layers.program import Call, run_program

__all__ = ["fold_rows"]

#: The longest rows that are reduced column by column, and the fewest.
_SHORT, _MANY = 16, 64
#: The values of a block, which stays in the cache from one column to the next.
_BLOCK = 1 << 15


def fold_rows(combine: np.ufunc, values: Array, target: Array) -> Thunk:
    """Return a function that reduces each non-empty row of `values` into the contiguous `target`.

    Where rows are short and many, values are combined in their own type even if the target's is wider, and must not overflow it.
    """
    length = values.shape[-1]
    rows, results = values.reshape(-1, length), target.reshape(-1)
    if not 2 <= length <= _SHORT or len(rows) < _MANY:
        return partial(combine.reduce, rows, 1, target.dtype, results)
    step = _BLOCK // length

    def calls() -> Iterator[Call]:
        for start in range(0, len(rows), step):
            columns = rows[start : start + step].T
            folded = results[start : start + step]
            into = partial(combine, out=folded)
            yield into, (columns[0], columns[1])
            for column in columns[2:]:
                yield into, (folded, column)

    return run_program(calls)
