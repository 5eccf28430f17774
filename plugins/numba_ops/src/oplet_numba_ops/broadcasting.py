"""Broadcasting patterns: how the smaller operand of an elementwise op repeats, in the few patterns that compiled loops support."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from math import prod

from oplet.kernels.arrays import Shape

__all__ = ["Repetition", "repetition"]


@dataclass(frozen=True)
class Repetition:
    """The larger operand as `blocks` blocks of `rows` rows of `columns` elements, and the smaller operand's step over them.

    Attributes:
        blocks: the number of blocks.
        rows: the rows of a block.
        columns: the elements of a row.
        advance: the elements of the small operand from one block to the next; 0 if each block reads the same ones.
        per_row: whether each row reads one element of the small operand; otherwise it reads one for each of its own.
    """

    blocks: int
    rows: int
    columns: int
    advance: int
    per_row: bool


@lru_cache(maxsize=1024)
def repetition(large: Shape, small: Shape) -> Repetition | None:
    """How `small` repeats over `large`, which it broadcasts to; None where that takes more than three nested loops."""
    padded = (1,) * (len(large) - len(small)) + small
    pairs = [(m, n > 1) for m, n in zip(large, padded) if m != 1]
    runs = [(held, prod(m for m, _ in group)) for held, group in groupby(pairs, lambda pair: pair[1])]
    if len(runs) > 3 or not runs:
        return None if runs else Repetition(1, 1, 1, 0, False)
    held = [flag for flag, _ in runs]
    sizes = [size for _, size in runs]
    if len(runs) == 1:
        return Repetition(1, 1, sizes[0], 0, not held[0])
    block = sizes[0] if len(runs) == 3 else 1
    rows, columns = sizes[-2:]
    advance = 0 if len(runs) < 3 or not held[0] else columns
    return Repetition(block, rows, columns, advance, not held[-1])
