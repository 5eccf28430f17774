"""What was done to inputs, on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from oplet.texts import one_line

if TYPE_CHECKING:
    from oplet.tools.running.values.notices import Notice

__all__ = ["NoticePrinter"]


class NoticePrinter:
    """Prints notices, one a line.

    Args:
        quiet: print nothing.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, notice: Notice) -> None:
        """Print what was done to an input."""
        self._say(f"{'warning: ' if notice.kind == 'clamped' else ''}{notice}")

    def warn(self, text: str) -> None:
        """Print a warning."""
        self._say(f"warning: {text}")

    def _say(self, text: str) -> None:
        if not self._quiet:
            typer.echo(f"oplet: {one_line(text)}", err=True)
