"""Lines on standard error: notices of what was done to inputs, warnings and errors."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

import typer

from oplet.texts import one_line

if TYPE_CHECKING:
    from oplet_tools.running.values.notices import Notice

__all__ = ["NoticePrinter", "said", "say"]

_RANDOM = "random"
#: Kinds of notices that are warnings.
_WARNINGS = frozenset({"clamped", _RANDOM})


class NoticePrinter:
    """Prints notices, one per line.

    Args:
        quiet: whether to print only notices of inputs that were forgotten and got random values.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, notice: Notice) -> None:
        """Print a notice."""
        text = f"{'warning: ' if notice.kind in _WARNINGS else ''}{notice}"
        if notice.kind == _RANDOM:
            say(text)
        else:
            self.say(text)

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.say(f"warning: {text}")

    def say(self, text: str) -> None:
        """Print a message about something that was done."""
        if not self._quiet:
            say(text)


def say(text: str) -> None:
    """Print one line on standard error, prefixed by the program's name; wrapped between words if that is a terminal."""
    typer.echo(said(text), err=True)


def said(text: str) -> str:
    """Return a line for standard error, prefixed by the program's name; wrapped between words if that is a terminal."""
    line = f"oplet: {one_line(text)}"
    if sys.stderr.isatty():
        line = textwrap.fill(line, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    return line
