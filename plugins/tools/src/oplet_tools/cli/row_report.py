"""Reports on standard error during a run on many rows: what was done to values, rows that failed, a progress bar, and a
summary.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from oplet.texts import counted, one_line, plain, shown
from oplet_tools.cli.progress import held_lines, width_of

if TYPE_CHECKING:
    from oplet_tools.running.many.run import Summary
    from oplet_tools.running.values.notices import Notice

__all__ = ["RowReport", "row_report"]

#: Rows that failed, of which each has a line of its own.
_MOST_ERRORS = 10
_REFRESH_SECONDS = 0.1


class RowReport:
    """Prints messages about a run on many rows. Of notices of one kind only the first is printed, and at the end their number.

    Args:
        quiet: whether to print only errors of rows that failed.
        write: writes a line.
        draw: draws a progress bar, given a phase and the fraction done; None for no bar.
    """

    def __init__(self, quiet: bool, write: Callable[[str], None], draw: Callable[[int, int | None], None] | None) -> None:
        self._quiet = quiet
        self._write = write
        self._draw = draw
        self._notices: Counter[tuple[str, str]] = Counter()
        self._failed = 0

    def notify(self, notice: Notice) -> None:
        """Report what was done to a value: print the first of its kind, count the others."""
        key = notice.kind, notice.input
        self._notices[key] += 1
        if self._notices[key] == 1:
            self.say(f"{'warning: ' if notice.kind == 'clamped' else ''}{notice}")

    def say(self, text: str) -> None:
        """Print a line, unless the report is quiet."""
        if not self._quiet:
            self._write(text)

    def warn(self, text: str) -> None:
        """Print a warning, unless the report is quiet."""
        self.say(f"warning: {text}")

    def failed(self, name: str, error: str) -> None:
        """Print the error of a row, unless too many were printed already."""
        self._failed += 1
        if self._failed <= _MOST_ERRORS:
            again = f"'{name}' "  # many errors begin with what they are about
            self._write(f"{shown(name)} {error[len(again) :]}" if error.startswith(again) else f"{shown(name)}: {error}")
        elif self._failed == _MOST_ERRORS + 1:
            self._write("more rows failed; the results have their errors")

    def interrupted(self, written: bool) -> None:
        """Print that Ctrl-C ended the run, and that --resume continues it if results were `written` to a file."""
        kept = "the finished rows are kept, and --resume continues the run" if written else "the rows above are whole"
        self._write(f"interrupted: {kept}")

    def progress(self, done: int, total: int | None) -> None:
        """Draw the progress bar at `done` of `total` rows; the total is None if it is not known."""
        if self._draw is not None:
            self._draw(done, total)

    def end(self, summary: Summary) -> None:
        """Print the summary of the run."""
        for (kind, name), number in self._notices.items():
            if number > 1:
                self.say(f"input '{shown(name)}': {_SUMS.get(kind, kind)} in {counted(number, 'row')}")
        ran = summary.rows - summary.before
        rate = f" in {summary.seconds:.1f} s, {ran / summary.seconds:.1f}/s" if ran and summary.seconds > 0 else ""
        before = f" and {summary.before} before" if summary.before else ""
        written = f", written to {plain(summary.written)}" if summary.written else ""
        self.say(f"{counted(ran, 'row')}{rate}{before}{written}")
        if summary.failed:
            self._write(f"{counted(summary.failed, 'row')} of {summary.rows} failed")


#: What is said of all rows together, by the kind of the notice.
_SUMS = {
    "picture": "pictures were prepared by the same rules",
    "clamped": "values were clamped",
    "whole numbers": "whole numbers were taken as real values",
}


@contextmanager
def row_report(quiet: bool, bar: bool) -> Iterator[RowReport]:
    """Yield a report, with a progress bar if standard error is a terminal.

    Args:
        quiet: whether to report nothing but rows that failed.
        bar: whether a bar may be drawn; False while results are printed on the same screen.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    if quiet or not bar or not console.is_terminal:
        yield RowReport(quiet, lambda text: typer.echo(f"oplet: {one_line(text)}", err=True), None)
        return

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.finished_speed or task.speed or 0:.1f}/s")

    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), Rate(), TimeElapsedColumn(), TimeRemainingColumn())
    # Standard output is results: whatever it is, rich must leave it alone.
    with (
        held_lines() as (screen, lines),
        Progress(
            *columns,
            console=(above := Console(file=screen, highlight=False, width=width_of(screen))),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as bars,
    ):
        task = bars.add_task("rows", total=None)
        drawn = began = 0.0

        def draw(done: int, total: int | None) -> None:
            nonlocal drawn, began
            now = time.monotonic()
            if not began:
                began = now
                bars.update(task, completed=done, total=total)
                bars.reset(task, completed=done, total=total)
            if now - drawn > _REFRESH_SECONDS or done == total:
                drawn = now
                for line in lines():
                    above.print(Text(plain(line)), soft_wrap=True)
                bars.update(task, completed=done, total=total, refresh=True)

        def write(text: str) -> None:
            # What is said of all rows together is said when the bar is gone.
            (console if screen.closed else above).print(Text(f"oplet: {one_line(text)}"), soft_wrap=True)

        yield RowReport(quiet, write, draw)
    sys.stderr.flush()
