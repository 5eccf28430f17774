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

__all__ = ["NoticePrinter", "say"]


class NoticePrinter:
    """Prints notices, one per line.

    Args:
        quiet: whether to print nothing.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, notice: Notice) -> None:
        """Print a notice."""
        self._say(f"{'warning: ' if notice.kind == 'clamped' else ''}{notice}")

    def warn(self, text: str) -> None:
        """Print a warning."""
        self._say(f"warning: {text}")

    def say(self, text: str) -> None:
        """Print a notice of the program's own."""
        self._say(text)

    def _say(self, text: str) -> None:
        if not self._quiet:
            say(text)


def say(text: str) -> None:
    """Print one line on standard error, after the program's name; a terminal gets it wrapped between words."""
    line = f"oplet: {one_line(text)}"
    if sys.stderr.isatty():
        line = textwrap.fill(line, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    typer.echo(line, err=True)
