"""Printing on standard output: lines, tables and JSON."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oplet.texts import LONGEST, plain

__all__ = ["Printer", "print_json"]

#: Cells between two columns.
_GAP = 2
#: Cells below which a column of text becomes hard to read.
_READABLE = 24


class Column(NamedTuple):
    """A column of a table in the terminal."""

    title: str  #: Its heading.
    number: bool = False  #: Whether it holds numbers, aligned to the right.
    text: bool = False  #: Whether it holds words, which may be wrapped; others are never broken.
    optional: int = 0  #: 0 for a column that is always shown; of others those with larger numbers are left out first.


class Layout(NamedTuple):
    """Layout of a table: the columns that are shown, and their widths."""

    columns: list[int]  #: The positions of the columns that are shown.
    widths: list[int]  #: The width of each shown column, in character cells.
    left_out: list[str]  #: The titles of the columns that are not shown.


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


#: Width of tables that are not to fit a terminal: wide enough that lines are not wrapped and can be searched.
_WIDE = 2000


class Printer:
    """Prints on standard output: texts without markup, control characters escaped, the middle of more than 8,000 characters left out.

    Args:
        wide: whether tables have all their columns and lines are not wrapped, however wide the terminal is; if the output is no terminal,
            it is always so.
    """

    def __init__(self, wide: bool = False) -> None:
        self._console = Console(file=sys.stdout, highlight=False)
        self._wide = wide or not self._console.is_terminal
        if self._wide:
            self._console = Console(file=sys.stdout, highlight=False, width=_WIDE)

    def line(self, text: str = "", style: str = "") -> None:
        """Print a line of text, wrapped between words where it is longer than the terminal is wide."""
        shown = plain(text, LONGEST)
        if not self._wide:
            # Between words alone: a path or a name stays whole.
            shown = textwrap.fill(shown, self._console.width, break_long_words=False, break_on_hyphens=False)
        self._console.print(Text(shown, style), soft_wrap=True)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table.

        Args:
            title: a heading; "" for none.
            columns: the titles, with suffix "#" for numbers, "~" for text that may be wrapped, "?" for columns that narrow terminals omit,
                and all if empty.
            rows: the cells.
        """
        if title:
            self.line()
            self.line(title, "bold")
        parsed = [parse_column(column) for column in columns]
        texts = [[plain(str(cell), LONGEST) for cell in row] for row in rows]
        # A column that narrow terminals may lack, and that says nothing of any row, is left out everywhere.
        told = [
            number
            for number, column in enumerate(parsed)
            if not column.optional or not texts or any(row[number] for row in texts)
        ]
        parsed, texts = [parsed[number] for number in told], [[row[number] for number in told] for row in texts]
        if self._wide:
            self._print_table(parsed, texts)
            return
        found = layout(parsed, texts, self._console.width)
        if found is None:
            self._print_records(parsed, texts)
            return
        self._print_table([parsed[number] for number in found.columns], [[row[n] for n in found.columns] for row in texts], found)
        if found.left_out:
            self.line(f"left out: {', '.join(found.left_out)} (--wide)", "dim")

    def _print_table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], found: Layout | None = None) -> None:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=found is not None)
        for number, column in enumerate(columns):
            table.add_column(
                Text(column.title),
                justify="right" if column.number else "left",
                no_wrap=found is not None and not column.text,
                overflow="fold",
                width=None if found is None else found.widths[number],
            )
        for row in rows:
            table.add_row(*map(Text, row))
        self._console.print(table)

    def _print_records(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        for number, row in enumerate(rows):
            if number:
                self.line()
            for column, cell in zip(columns, row):
                if cell:
                    self.line(f"{column.title}: {cell}" if column.title else cell)


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII."""
    print(json.dumps(value, indent=2))
