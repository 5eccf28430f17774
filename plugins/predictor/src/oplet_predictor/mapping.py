"""`Predictor.map`: items are read a few ahead of the workers, run in small groups, and their results are yielded in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from oplet.errors import OpletError, TensorError
from oplet.texts import logger_of
from oplet_predictor.map_workers import Group, Workers, make_workers
from oplet_predictor.pool import RunsItems

__all__ = ["MapSettings", "map_items"]

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


#: The most items of a group, and the seconds after which a group is not made larger, in its run and while its items are read.
_LARGEST, _SECONDS = 256, 0.005


@dataclass(frozen=True)
class MapSettings:
    """The checked arguments of `Predictor.map`, under the same names."""

    workers: int
    processes: bool
    ordered: bool
    errors: str
    progress: bool | Callable[[int, int | None], object]

    @classmethod
    def checked(cls, workers: object, processes: bool, ordered: bool, errors: str, progress: object) -> MapSettings:
        """Check the arguments of `Predictor.map`, and return them as settings.

        Raises:
            TensorError: an argument is wrong (a ValueError).
        """
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise TensorError(f"workers is {workers!r}; give a whole number of at least 1.")
        if errors not in ("raise", "return"):
            raise TensorError(
                f"errors is {errors!r}; give 'raise' to end at the first error, 'return' to get errors in place of results."
            )
        if not (isinstance(progress, bool) or progress is None or callable(progress)):
            raise TensorError(
                f"progress is {progress!r:.80}; give True for a bar, or a function of the number done and the total."
            )
        return cls(workers, bool(processes), bool(ordered), errors, progress or False)


def map_items(
    predictor: RunsItems, iterable: Iterable[Any], settings: MapSettings, taken: Callable[[Any], Any] = lambda item: item
) -> Generator[Any, None, None]:
    """Return the iterator for `Predictor.map`, of each item as `taken` gives it; workers start when its first result is asked for.

    Raises:
        PluginError: the Predictor cannot be sent to processes.
        TensorError: `iterable` cannot be iterated over (this is a ValueError).
    """
    if settings.processes:
        predictor._ensure_picklable()
    if not isinstance(iterable, Iterable) and not hasattr(iterable, "__getitem__"):
        raise TensorError(f"map takes an iterable of items, which {type(iterable).__name__} is not.")
    return _mapped(predictor, iterable, settings, taken)


def _mapped(
    predictor: RunsItems, iterable: Iterable[Any], settings: MapSettings, taken: Callable[[Any], Any]
) -> Generator[Any, None, None]:
    total = len(iterable) if isinstance(iterable, Sized) else None
    with (
        closing(make_workers(predictor, settings.workers, settings.processes)) as workers,
        progress_of(settings.progress, total) as progress,
    ):
        reader = _Reader(map(taken, iterable))
        groups = _in_order(reader, workers) if settings.ordered else _as_done(reader, workers)
        for group in groups:
            yield from _results(group, settings, progress)
        if reader.failure is not None:
            raise reader.failure


def _results(group: Group, settings: MapSettings, progress: Progress) -> Iterator[Any]:
    if group.failure is not None:
        raise group.failure
    for number, outcome in enumerate(group.outcomes or (), group.first):
        if isinstance(outcome, BaseException) and not (settings.errors == "return" and isinstance(outcome, OpletError)):
            raise outcome
        progress.step()
        yield outcome if settings.ordered else (number, outcome)


class _Reader:
    """Reads an iterable in groups, which grow until one takes a few milliseconds to run, so that handing over costs little.

    Attributes:
        ended: whether there is nothing more to read.
        failure: what the iterable raised, to be raised after the results of the items before.
    """

    def __init__(self, iterable: Iterable[Any]) -> None:
        self._source = iter(iterable)
        self._read = 0
        self._size = 1
        self.ended = False
        self.failure: Exception | None = None

    def read(self) -> Group | None:
        """Read the next group; None at the end."""
        items: list[Any] = []
        began = time.monotonic()
        while len(items) < self._size and (not items or time.monotonic() - began < _SECONDS):
            try:
                items.append(next(self._source))
            except StopIteration:
                self.ended = True
                break
            except Exception as error:
                self.ended, self.failure = True, error
                break
        self._read += len(items)
        return Group(self._read - len(items), items) if items else None

    def learn(self, group: Group) -> None:
        """Adapt the size of the next groups to the time that running this group took."""
        if len(group.items) >= self._size and group.seconds < _SECONDS:
            self._size = min(max(2 * self._size, group.batch), max(_LARGEST, group.batch))
        if self._size > group.batch > 1:
            self._size -= self._size % group.batch


def _in_order(reader: _Reader, workers: Workers) -> Iterator[Group]:
    waiting: deque[Group] = deque()
    while True:
        while not reader.ended and len(waiting) < workers.capacity and not (waiting and waiting[0].done):
            if (group := reader.read()) is not None:
                waiting.append(group)
                workers.submit(group)
            while (done := workers.poll()) is not None:
                reader.learn(done)
        if not waiting:
            return
        while not waiting[0].done:
            reader.learn(workers.next_done())
        yield waiting.popleft()


def _as_done(reader: _Reader, workers: Workers) -> Iterator[Group]:
    under_way = 0
    while True:
        while not reader.ended and under_way < workers.capacity:
            if (group := reader.read()) is None:
                break
            under_way += 1
            workers.submit(group)
            if (done := workers.poll()) is not None:
                under_way -= 1
                reader.learn(done)
                yield done
        if not under_way:
            return
        done = workers.next_done()
        under_way -= 1
        reader.learn(done)
        yield done
