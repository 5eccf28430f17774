"""How work is cut into parts: a few for each of several threads, so that a thread that is held up keeps nobody waiting, and as many
as it takes for each to be short, so that a run can be stopped between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar, overload

from oplet_numba_ops.broadcasting import Repetition
from oplet_numba_ops.threads.jobs import MOST_PARTS

__all__ = ["WORTH_VALUES", "Many", "Range", "cut", "cut_pair", "each", "grid", "in_turn", "slots", "together"]

Item = TypeVar("Item")
Other = TypeVar("Other")
Range = tuple[int, int]
#: Numbers whose part in an elementwise op is worth one of its own.
WORTH_VALUES = 4_000
#: Parts for each thread. With more, neighbouring parts of one kernel and the next are more often done by different threads, which
#: then wait for what lies in the other's cache.
_EACH = 2
#: Parts, each just worth being one, that no part is longer than if it can be cut: some ten milliseconds.
_LONGEST = 4096


class Many(Sequence[Item]):
    """Parts of long work. There may be very many, so that each is made when it is its turn.

    Args:
        count: how many there are.
        slots: how many of them are done at once.
        make: gives the part of a number.
    """

    def __init__(self, count: int, slots: int, make: Callable[[int], Item]) -> None:
        self.slots = slots
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Item: ...

    @overload
    def __getitem__(self, number: slice) -> list[Item]: ...

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self._make(each) for each in range(self._count)[number]]
        return self._make(range(self._count)[number])


def together(threads: int) -> int:
    """How many parts are done between two looks at whether the run is to end: as many as short work has at most."""
    return 1 if threads == 1 else min(threads * _EACH, MOST_PARTS)


def slots(parts: Sequence[Any]) -> int:
    """How many of the parts may be done at once, and need memory of their own."""
    return parts.slots if isinstance(parts, Many) else len(parts)


def each(parts: Sequence[Item], make: Callable[[Item, int], Other]) -> Sequence[Other]:
    """What is made of each part, and of the number of its slot: parts of the same slot are never done at once."""
    if not isinstance(parts, Many):
        return [make(part, number) for number, part in enumerate(parts)]
    several = parts.slots
    return Many(len(parts), several, lambda number: make(parts[number], number % several))


def in_turn(count: int, step: int) -> Sequence[Range]:
    """Ranges of `step` that cover `count`, each of which is done when the one before is."""
    return [(0, count)] if count <= step else _ranges(count, step, 1)


def _ranges(count: int, step: int, slots: int) -> Many[Range]:
    return Many(-(-count // step), slots, lambda number: (number * step, min((number + 1) * step, count)))


def _pieces(length: int, threads: int) -> int:
    """Into how many parts to cut work of such a length."""
    least, several = -(-length // _LONGEST), together(threads)
    return least if least <= 1 else -(-least // several) * several


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


def cut(count: int, worth: int, threads: int, multiple: int = 1, length: int | None = None) -> Sequence[Range]:
    """Cut `count` rows into ranges for several threads, and long work into more of them.

    Args:
        worth: how many parts the work is large enough for.
        multiple: of which all ranges but the last are.
        length: how many parts it would be if each were just worth it, where that is more.
    """
    most = 1 if threads == 1 else min(worth, threads * _EACH, MOST_PARTS)
    pieces = _pieces(worth if length is None else length, threads)
    if pieces > most and count > multiple:
        return _ranges(count, max(1, -(-count // (multiple * pieces))) * multiple, together(threads))
    return _even(count, most, threads, multiple)


def grid(
    rows: int,
    multiple: int,
    columns: int,
    worth: int,
    threads: int,
    by_columns: bool,
    length: int | None = None,
    least: int = 1,
) -> Sequence[tuple[Range, Range]]:
    """Cut a table into blocks, each a range of rows and one of columns.

    Args:
        multiple: of which all ranges of rows but the last are.
        worth: how many parts the work is large enough for.
        by_columns: whether to cut columns rather than rows, where either will do.
        length: as `cut` takes it.
        least: rows that a block of long work has at least.
    """
    parts = 1 if threads == 1 else max(1, min(worth, threads * _EACH, MOST_PARTS))
    pieces = _pieces(worth if length is None else length, threads)
    if pieces > parts and (rows > max(multiple, least) or columns > 1):
        return _long_grid(rows, max(multiple, -(-least // multiple) * multiple), columns, pieces, together(threads), by_columns)
    most = columns if by_columns else -(-rows // multiple)
    first = min(parts, most)
    other = parts // first
    if by_columns:
        return [(row, column) for column in _even(columns, first, threads) for row in _even(rows, other, threads, multiple)]
    return [(row, column) for row in _even(rows, first, threads, multiple) for column in _even(columns, other, threads)]


def _long_grid(
    rows: int, multiple: int, columns: int, pieces: int, slots: int, by_columns: bool
) -> Sequence[tuple[Range, Range]]:
    bands = -(-rows // multiple)
    first = min(pieces, columns if by_columns else bands)
    other = -(-pieces // first)
    of_rows, of_columns = (other, first) if by_columns else (first, other)
    row = _ranges(rows, -(-bands // min(of_rows, bands)) * multiple, slots)
    column = _ranges(columns, -(-columns // min(of_columns, columns)), slots)

    def block(number: int) -> tuple[Range, Range]:
        if by_columns:
            return row[number % len(row)], column[number // len(row)]
        return row[number // len(column)], column[number % len(column)]

    return Many(len(row) * len(column), slots, block)


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
