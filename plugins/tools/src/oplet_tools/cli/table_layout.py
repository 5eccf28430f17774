"""Layout of a table in a terminal: which columns are shown, and how wide each is, so that no number and no name is broken.

Where a table is wider than the terminal, columns that are marked as less important are left out first, then texts are wrapped between words,
and where that does not suffice each row becomes a record, one line for each cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

__all__ = ["Column", "Layout", "layout", "parse_column"]

#: Cells between two columns.
_GAP = 2
#: Cells below which a column of text becomes hard to read.
_READABLE = 24


class Column(NamedTuple):
    """A column of a table in the terminal.

    Attributes:
        title: its heading.
        number: whether it holds numbers, aligned to the right.
        text: whether it holds words, which may be wrapped; others are never broken.
        optional: 0 for a column that is always shown; of others those with larger numbers are left out first.
    """

    title: str
    number: bool = False
    text: bool = False
    optional: int = 0


class Layout(NamedTuple):
    """Layout of a table: the columns that are shown, and their widths.

    Attributes:
        columns: the positions of the columns that are shown.
        widths: the width of each shown column, in character cells.
        left_out: the titles of the columns that are not shown.
    """

    columns: list[int]
    widths: list[int]
    left_out: list[str]


def parse_column(text: str) -> Column:
    """Parse the short form of a column: the title, then "#" for numbers, "~" for text, and a "?" or several for what may be left
    out.
    """
    title = text.rstrip("#~?")
    marks = text[len(title) :]
    return Column(title, "#" in marks, "~" in marks, marks.count("?"))


def layout(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Layout | None:
    """Choose a table's shown columns and their widths, within a width in character cells; None if its rows must be printed as records."""
    cells = [[column.title, *(row[number] for row in rows)] for number, column in enumerate(columns)]
    natural = [max(map(cell_len, texts)) for texts in cells]
    # Whole words, but at least what can be read well.
    least = [
        max((cell_len(word) for text in texts for word in text.split()), default=0) if column.text else size
        for column, texts, size in zip(columns, cells, natural)
    ]
    readable = [max(small, min(size, _READABLE)) for small, size in zip(least, natural)]
    shown = list(range(len(columns)))
    droppable = sorted((n for n in shown if columns[n].optional), key=lambda n: (columns[n].optional, n))
    while not _fits(readable, shown, width) and droppable:
        shown.remove(droppable.pop())
    smallest = readable if _fits(readable, shown, width) else least
    if not _fits(smallest, shown, width):
        return None
    widths = _shared(natural, smallest, shown, width)
    return Layout(shown, widths, [column.title for number, column in enumerate(columns) if number not in shown])


def _fits(sizes: Sequence[int], shown: Sequence[int], width: int) -> bool:
    return sum(sizes[number] for number in shown) + _GAP * (len(shown) - 1) <= width


def _shared(natural: Sequence[int], smallest: Sequence[int], shown: Sequence[int], width: int) -> list[int]:
    """Distribute the width among the shown columns: each has at least its smallest width, and those that lack least of their
    natural width get it first.
    """
    sizes = {number: smallest[number] for number in shown}
    left = width - sum(sizes.values()) - _GAP * (len(shown) - 1)
    wanting = sorted((n for n in shown if natural[n] > sizes[n]), key=lambda n: natural[n] - sizes[n])
    for position, number in enumerate(wanting):
        more = min(natural[number] - sizes[number], left // (len(wanting) - position))
        sizes[number] += more
        left -= more
    return [sizes[number] for number in shown]
