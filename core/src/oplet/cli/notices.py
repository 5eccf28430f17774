"""Notices of what was done to inputs, printed on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from oplet.texts import one_line

if TYPE_CHECKING:
    from oplet.tools.running.values.notices import Notice

__all__ = ["NoticePrinter"]


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

    def _say(self, text: str) -> None:
        if not self._quiet:
            typer.echo(f"oplet: {one_line(text)}", err=True)
