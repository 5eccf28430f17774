"""Progress of `Predictor.map`: calls of a user's function, or a bar on standard error with the rate and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from oplet.texts import logger_of

__all__ = ["Progress", "progress_of"]

Report = Callable[[int, "int | None"], object]


class Progress:
    """Counter of a run's results that reports each one."""

    def __init__(self, report: Report | None, total: int | None) -> None:
        self._report = report
        self._total = total
        self._done = 0

    def step(self) -> None:
        """Count one more result, and report it."""
        if self._report is not None:
            self._done += 1
            self._report(self._done, self._total)


@contextmanager
def progress_of(asked: bool | Report, total: int | None) -> Iterator[Progress]:
    """Yield a counter of results that draws a progress bar or calls a function, as the caller asked.

    Args:
        asked: True for a bar, False for nothing, or the function to call.
        total: the number of items, None if it is not known.
    """
    if not asked or callable(asked):
        yield Progress(asked if callable(asked) else None, total)
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            ProgressColumn,
            Task,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars
        from rich.text import Text
    except ImportError:
        logger_of("oplet.predictor").warning("progress=True draws its bar with rich, which is not installed: pip install rich")
        yield Progress(None, total)
        return

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.finished_speed or task.speed or 0:.1f}/s")

    console = Console(stderr=True)
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), Rate(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        task = bars.add_task("rows", total=total)
        yield Progress(lambda done, _: bars.update(task, completed=done), total)
