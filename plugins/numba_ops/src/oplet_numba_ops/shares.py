"""How work is cut into parts for several threads: a few parts for each, so that a thread that is held up keeps nobody waiting."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from oplet_numba_ops.broadcasting import Repetition
from oplet_numba_ops.sharing import MOST_PARTS

__all__ = ["WORTH_VALUES", "Range", "cut", "cut_pair", "grid"]

Range = tuple[int, int]
#: Numbers whose part in an elementwise op is worth one of its own.
WORTH_VALUES = 4_000
#: Parts for each thread. With more, neighbouring parts of one kernel and the next are more often done by different threads, which
#: then wait for what lies in the other's cache.
_EACH = 2


def _even(count: int, most: int, threads: int, multiple: int = 1) -> list[Range]:
    """Ranges that cover `count`, as many up to `most` as spread the work best, all but the last a multiple of `multiple` long."""
    units = -(-count // multiple)
    best = [(0, count)]
    least = float(units)
    for parts in range(2, min(most, units) + 1):
        bounds = [units * part // parts for part in range(parts + 1)]
        work = [0] * threads
        for first, last in pairwise(bounds):  # whoever has least to do takes the next part
            work[work.index(min(work))] += last - first
        if max(work) <= least:
            least = max(work)
            best = [(first * multiple, min(last * multiple, count)) for first, last in pairwise(bounds)]
    return best


def cut(count: int, worth: int, threads: int, multiple: int = 1) -> list[Range]:
    """Cut `count` rows into ranges for several threads.

    Args:
        worth: how many parts the work is large enough for.
        multiple: of which all ranges but the last are.
    """
    return _even(count, 1 if threads == 1 else min(worth, threads * _EACH, MOST_PARTS), threads, multiple)


def grid(rows: int, multiple: int, columns: int, worth: int, threads: int, by_columns: bool) -> list[tuple[Range, Range]]:
    """Cut a table into blocks, each a range of rows and one of columns.

    Args:
        multiple: of which all ranges of rows but the last are.
        worth: how many parts the work is large enough for.
        by_columns: whether to cut columns rather than rows, where either will do.
    """
    parts = 1 if threads == 1 else max(1, min(worth, threads * _EACH, MOST_PARTS))
    most = columns if by_columns else -(-rows // multiple)
    first = min(parts, most)
    other = parts // first
    if by_columns:
        return [(row, column) for column in _even(columns, first, threads) for row in _even(rows, other, threads, multiple)]
    return [(row, column) for row in _even(rows, first, threads, multiple) for column in _even(columns, other, threads)]


def cut_pair(how: Repetition, threads: int, worth: int) -> list[tuple[Repetition, Range, Range]]:
    """Cut an elementwise op of which one operand repeats: how it does in each part, and the part of the large and of the small one.

    Args:
        worth: numbers that are worth a part.
    """
    block = how.rows * how.columns
    pieces = how.blocks * block // worth
    if how.blocks > 1:
        seen = how.advance or (how.rows if how.per_row else how.columns)
        return [
            (
                replace(how, blocks=last - first),
                (first * block, last * block),
                (first * how.advance, (last - 1) * how.advance + seen),
            )
            for first, last in cut(how.blocks, pieces, threads)
        ]
    if how.rows > 1:
        return [
            (
                replace(how, rows=last - first),
                (first * how.columns, last * how.columns),
                (first, last) if how.per_row else (0, how.columns),
            )
            for first, last in cut(how.rows, pieces, threads)
        ]
    return [
        (replace(how, columns=last - first), (first, last), (0, 1) if how.per_row else (first, last))
        for first, last in cut(how.columns, pieces, threads)
    ]
