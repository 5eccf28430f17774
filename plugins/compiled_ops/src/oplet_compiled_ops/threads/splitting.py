"""Division of work into parts: a few per thread for balance, and more for long work, so that a run can be stopped between parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar, overload

from oplet_compiled_ops.threads import MOST_PARTS

if TYPE_CHECKING:
    from oplet_compiled_ops.elementwise.plain.broadcasting import Repetition

__all__ = ["WORTH_VALUES", "Many", "Range", "cut", "cut_pair", "each", "grid", "in_turn", "slots", "together"]

Item = TypeVar("Item")
Other = TypeVar("Other")
Range = tuple[int, int]
#: The least numbers of a part of an elementwise op.
WORTH_VALUES = 4_000
#: Parts per thread. With more, neighbouring parts of consecutive kernels are more often done by different threads, which then wait
#: for memory in the other's cache.
_EACH = 2
#: The length of a part of long work, in parts of the least size: some ten milliseconds.
_LONGEST = 4096


class Many(Sequence[Item]):
    """A lazy sequence of the parts of long work, since there may be very many.

    Args:
        count: the number of parts.
        slots: how many parts may run at the same time; each of these uses scratch memory (a slot) of its own.
        make: returns the part with this number.
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
    """Return how many parts of long work run on `threads` threads between two checkpoints, where a run can be stopped."""
    return 1 if threads == 1 else min(threads * _EACH, MOST_PARTS)


def slots(parts: Sequence[Any]) -> int:
    """Return how many of these parts may run at the same time, and so need scratch memory (a slot) of their own."""
    return len(parts) if parts.__class__ is list or not isinstance(parts, Many) else parts.slots


def each(parts: Sequence[Item], make: Callable[[Item, int], Other]) -> Sequence[Other]:
    """Return `make(part, slot)` for each part, lazily for long work; parts with the same slot number never run at once."""
    if parts.__class__ is list or not isinstance(parts, Many):  # `Many` is an abstract class, which takes long to ask
        return [make(part, number) for number, part in enumerate(parts)]
    several = parts.slots
    return Many(len(parts), several, lambda number: make(parts[number], number % several))


def in_turn(count: int, step: int) -> Sequence[Range]:
    """Divide 0 to `count` into ranges of length `step`, to be run one after the other, with checkpoints in between."""
    return [(0, count)] if count <= step else _ranges(count, step, 1)


def _ranges(count: int, step: int, slots: int) -> Many[Range]:
    return Many(-(-count // step), slots, lambda number: (number * step, min((number + 1) * step, count)))


def _pieces(length: int, threads: int) -> int:
    """Return into how many parts to divide work so that each takes some ten milliseconds at most.

    `length` is that of the work in parts of the least size that is worth a thread's while.
    """
    least, several = -(-length // _LONGEST), together(threads)
    return least if least <= 1 else -(-least // several) * several


def _even(count: int, most: int, threads: int, multiple: int = 1) -> list[Range]:
    """Divide 0 to `count` into at most `most` ranges that keep `threads` threads about equally busy.

    All ranges but the last have a multiple of `multiple`.
    """
    units = -(-count // multiple)
    best = [(0, count)]
    least = float(units)
    for parts in range(2, min(most, units) + 1):
        bounds = [units * part // parts for part in range(parts + 1)]
        work = [0] * threads
        for first, last in pairwise(bounds):  # the thread with the least work takes the next part
            work[work.index(min(work))] += last - first
        if max(work) <= least:
            least = max(work)
            best = [(first * multiple, min(last * multiple, count)) for first, last in pairwise(bounds)]
    return best


def cut(count: int, worth: int, threads: int, multiple: int = 1, length: int | None = None) -> Sequence[Range]:
    """Divide `count` rows into ranges for several threads; long work into more of them, so that a run can be stopped in between.

    Args:
        count: the rows.
        worth: the most parts for which using another thread pays off.
        threads: the number of threads.
        multiple: the length of every range but the last is a multiple of this number.
        length: the amount of work, in parts of the smallest size for which a thread pays off; None for `worth`.
    """
    if threads == 1 and (worth if length is None else length) <= _LONGEST:
        return [(0, count)]
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
    """Divide a table into blocks for several threads, each a range of rows and a range of columns; long work into more of them.

    Args:
        rows: the rows of the table.
        multiple: the length of every range of rows but the last is a multiple of this number.
        columns: the columns of the table.
        worth: the most blocks for which using another thread pays off.
        threads: the number of threads.
        by_columns: whether to divide the columns first, and rows only for more blocks; otherwise rows come first.
        length: the amount of work, in blocks of the smallest size for which a thread pays off; None for `worth`.
        least: the least rows of a block of long work.
    """
    if threads == 1 and (worth if length is None else length) <= _LONGEST:
        return [((0, rows), (0, columns))]
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
    """Divide a broadcasting elementwise op for several threads.

    Return for each part its broadcasting pattern, and the ranges of elements of the larger and of the smaller operand that it reads.

    Args:
        how: the broadcasting pattern of the whole.
        threads: the number of threads.
        worth: the fewest elements of a part for which using another thread pays off.
    """
    block = how.rows * how.columns
    pieces = how.blocks * block // worth
    seen = how.advance or (how.rows if how.per_row else how.columns)
    if threads == 1 and pieces <= _LONGEST:  # one part, as `cut` divides it
        return [(how, (0, how.blocks * block), (0, (how.blocks - 1) * how.advance + seen))]
    if how.blocks > 1:
        return [
            (
                how._replace(blocks=last - first),
                (first * block, last * block),
                (first * how.advance, (last - 1) * how.advance + seen),
            )
            for first, last in cut(how.blocks, pieces, threads)
        ]
    if how.rows > 1:
        return [
            (
                how._replace(rows=last - first),
                (first * how.columns, last * how.columns),
                (first, last) if how.per_row else (0, how.columns),
            )
            for first, last in cut(how.rows, pieces, threads)
        ]
    return [
        (how._replace(columns=last - first), (first, last), (0, 1) if how.per_row else (first, last))
        for first, last in cut(how.columns, pieces, threads)
    ]
