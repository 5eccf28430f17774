"""Progress bars on standard error, if that is a terminal, and log lines that appear above them."""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["held_lines", "progress_bars", "width_of"]

_REFRESH_SECONDS = 0.1
_STDERR = 2


@contextmanager
def progress_bars() -> Iterator[Callable[[str, float], None] | None]:
    """Yield a callback that draws progress bars, None if standard error is not a terminal.

    The callback takes the name of a phase, and the fraction of it that is done, 0 to 1. A bar appears with the first call for it,
    and is full after a call with 1. Bars are drawn in the callback alone, never during a run that is measured. What engines log
    meanwhile, also from native code, appears above the bars.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    from oplet.texts import plain

    if not Console(stderr=True).is_terminal:
        yield None
        return
    with held_lines() as (screen, lines):
        console = Console(file=screen, width=width_of(screen))
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, auto_refresh=False, transient=True) as bars:
            tasks: dict[str, TaskID] = {}
            drawn = 0.0

            def update(what: str, part: float) -> None:
                nonlocal drawn
                new, now = what not in tasks, time.monotonic()
                if new:
                    tasks[what] = bars.add_task(plain(what), total=1.0)
                bars.update(tasks[what], completed=min(part, 1.0))
                if new or part >= 1.0 or now - drawn > _REFRESH_SECONDS:
                    drawn = now
                    for line in lines():
                        console.print(Text(plain(line)), soft_wrap=True)
                    bars.refresh()

            yield update


@contextmanager
def held_lines() -> Iterator[tuple[TextIO, Callable[[], list[str]]]]:
    """Capture what Python and native code write to standard error, so that a progress bar is not broken; yield a stream and a reader.

    Yields:
        A stream that writes to the real standard error; and a callable that returns the lines captured since its last call. Lines that are
        never fetched are written at the end. Where standard error is replaced (in a test, a notebook), or on Windows, nothing is captured.
    """
    if not hasattr(os, "pread") or not _is_own(sys.stderr):
        yield sys.stderr, list
        return
    sys.stderr.flush()
    told = 0
    # A file, not a pipe: nobody needs to read it while native code holds the interpreter's lock.
    with (
        tempfile.TemporaryFile() as held,
        os.fdopen(os.dup(_STDERR), "w", encoding=sys.stderr.encoding, errors="replace") as screen,
    ):

        def rest() -> bytes:
            return os.pread(held.fileno(), max(0, os.fstat(held.fileno()).st_size - told), told)

        def lines() -> list[str]:
            nonlocal told
            complete = b"".join(rest().rpartition(b"\n")[:2])
            told += len(complete)
            return complete.decode(errors="replace").splitlines()

        os.dup2(held.fileno(), _STDERR)
        watched = faulthandler.is_enabled()
        # Should an engine abort the process, what it logged is lost with the file: say at least where that was.
        faulthandler.enable(screen)
        try:
            yield screen, lines
        finally:
            faulthandler.disable()
            sys.stderr.flush()
            screen.flush()
            os.dup2(screen.fileno(), _STDERR)
            if watched:
                faulthandler.enable()
            screen.buffer.write(rest())


def _is_own(stream: TextIO) -> bool:
    try:
        return stream.fileno() == _STDERR
    except (OSError, ValueError, AttributeError):
        return False


def width_of(screen: TextIO) -> int | None:
    """Return the width in columns of the terminal that `screen` writes to; None to let rich find the width, if COLUMNS is set or
    there is no terminal. (Rich asks standard error first, which is no terminal while it is captured.)
    """
    try:
        return None if "COLUMNS" in os.environ else os.get_terminal_size(screen.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return None
