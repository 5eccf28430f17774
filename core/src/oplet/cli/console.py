"""Printing on standard output: lines, tables and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oplet.texts import plain

__all__ = ["Printer", "print_json"]

#: Width of tables if the output is not a terminal: wide enough that lines are not wrapped and can be searched.
_WIDE = 2000


class Printer:
    """Prints on standard output. Texts are printed literally, without markup, and with control characters escaped."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stdout, highlight=False)
        if not self._console.is_terminal:
            self._console = Console(file=sys.stdout, highlight=False, width=_WIDE)

    def line(self, text: str = "", style: str = "") -> None:
        """Print a line of text."""
        self._console.print(Text(plain(text), style), soft_wrap=True)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table. Columns named "name#" hold numbers and are aligned to the right."""
        if title:
            self.line()
            self.line(title, "bold")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in columns:
            number = column.endswith("#")
            table.add_column(Text(column.rstrip("#")), justify="right" if number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(plain(str(cell))) for cell in row))
        self._console.print(table)


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII."""
    print(json.dumps(value, indent=2))
