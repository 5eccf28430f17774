"""Progress bars on standard error, if that is a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bars"]

_REFRESH_SECONDS = 0.1


@contextmanager
def progress_bars() -> Iterator[Callable[[str, float], None] | None]:
    """Yield a callback that draws progress bars, None if standard error is not a terminal. Bars are drawn between runs, never during one."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bars:
        tasks: dict[str, TaskID] = {}
        drawn = 0.0

        def update(what: str, part: float) -> None:
            nonlocal drawn
            now = time.monotonic()
            if now - drawn > _REFRESH_SECONDS:
                drawn = now
                if what not in tasks:
                    tasks[what] = bars.add_task(what, total=1.0)
                bars.update(tasks[what], completed=min(part, 1.0), refresh=True)

        yield update
