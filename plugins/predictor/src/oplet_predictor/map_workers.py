"""The workers of `Predictor.map`: the calling thread itself, threads, or threads that each drive a process."""

from __future__ import annotations

import time
from collections import deque
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Protocol

from oplet.errors import OpletError
from oplet_predictor.pool import Lent, Outcome, RunsItems
from oplet_predictor.worker_process import WorkerProcess

__all__ = ["Group", "Workers", "make_workers"]

#: Seconds between two looks whether anything happened; only Windows needs them, where Ctrl-C does not interrupt a wait.
_LOOK = 1.0
#: Groups that each worker has at most: the one that it runs, and those that wait.
_AT_ONCE = 3
#: Seconds between two attempts to stop a worker: a run that begins just after one does not see it.
_STOP = 0.02


class Group:
    """A group of items that one worker runs together.

    Attributes:
        first: the number of the first item.
        items: the items.
        outcomes: the result or error of each; None before they are run.
        failure: the exception that ended the whole group, such as a worker process that died; None if each item has an outcome.
        seconds: the time that running it took.
        batch: the size of the batches that the worker runs.
    """

    def __init__(self, first: int, items: list[Any]) -> None:
        self.first = first
        self.items = items
        self.outcomes: list[Outcome] | None = None
        self.failure: BaseException | None = None
        self.seconds = 0.0
        self.batch = 1

    @property
    def done(self) -> bool:
        """Whether the group was run, successfully or not."""
        return self.outcomes is not None or self.failure is not None


class Workers(Protocol):
    """Protocol: a set of workers that run groups; only the thread that takes the results calls its methods."""

    #: The most groups that may be submitted and not yet done.
    capacity: int

    def submit(self, group: Group) -> None:
        """Queue a group to be run by a worker."""

    def next_done(self) -> Group:
        """Wait until another group is done, and return it."""

    def poll(self) -> Group | None:
        """Return another group that is done; None if there is none yet."""

    def close(self) -> None:
        """Stop all workers, and the runs in them."""


def make_workers(predictor: RunsItems, count: int, processes: bool) -> Workers:
    """Return the workers for `Predictor.map`; they start with the first group."""
    if processes:
        return _Threads([_InProcess(predictor) for _ in range(count)])
    return _Threads([_InThread(predictor) for _ in range(count)]) if count > 1 else _Here(predictor)


class _InThread:
    """Runs groups in the calling thread, with one interpreter that it borrows from the pool for its lifetime."""

    def __init__(self, predictor: RunsItems) -> None:
        self._predictor = predictor
        self._lent: Lent | None = None
        self._stopped = Event()

    def run(self, group: Group) -> None:
        """Run a group; errors are stored in it."""
        began = time.monotonic()
        try:
            if self._lent is None:
                self._lent = self._predictor._take()
            group.batch = self._predictor._batch_size(self._lent)
            group.outcomes = self._predictor._run_items(self._lent, group.first, group.items, self._stopped.is_set)
        except BaseException as error:
            if not isinstance(error, OpletError) and (lent := self._lent) is not None:  # nobody knows what it left behind
                self._lent = None
                lent.close()
            group.failure = error
        group.seconds = time.monotonic() - began

    def stop(self) -> None:
        """Cancel the run that another thread is in; called from the thread that takes the results."""
        self._stopped.set()
        if (lent := self._lent) is not None:
            lent.cancel()

    def end(self) -> None:
        """Return the interpreter to the pool when there are no more groups."""
        lent, self._lent = self._lent, None
        if lent is not None:
            self._predictor._give(lent)


class _InProcess:
    """Runs groups in a child process that is this worker's own."""

    def __init__(self, predictor: RunsItems) -> None:
        self._process = WorkerProcess(predictor)

    def run(self, group: Group) -> None:
        """Run a group in the child process; errors are stored in the group."""
        began = time.monotonic()
        try:
            group.batch, group.outcomes = self._process.run(group.first, group.items)
        except BaseException as error:
            group.failure = error
        group.seconds = time.monotonic() - began

    def stop(self) -> None:
        """End the child process, and so cancel the run that another thread is waiting for."""
        self._process.stop()

    end = stop


class _Here:
    """`Workers` of one worker, which runs each group in the calling thread as soon as it is submitted."""

    capacity = 1

    def __init__(self, predictor: RunsItems) -> None:
        self._worker = _InThread(predictor)
        self._done: deque[Group] = deque()

    def submit(self, group: Group) -> None:
        self._worker.run(group)
        self._done.append(group)

    def next_done(self) -> Group:
        return self._done.popleft()

    def poll(self) -> Group | None:
        return self._done.popleft() if self._done else None

    def close(self) -> None:
        self._worker.end()


class _Threads:
    """`Workers` with a thread for each worker; a thread is started when there is a group for it."""

    def __init__(self, workers: list[Any]) -> None:
        self.capacity = _AT_ONCE * len(workers)
        self._workers = workers
        self._threads: list[Thread] = []
        self._tasks: SimpleQueue[Group | None] = SimpleQueue()
        self._done: SimpleQueue[Group] = SimpleQueue()

    def submit(self, group: Group) -> None:
        if len(self._threads) < len(self._workers):
            number = len(self._threads)
            arguments = self._workers[number], self._tasks, self._done
            thread = Thread(target=_work, args=arguments, name=f"oplet-map-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)
        self._tasks.put(group)

    def next_done(self) -> Group:
        while True:
            try:
                return self._done.get(timeout=_LOOK)
            except Empty:
                continue

    def poll(self) -> Group | None:
        try:
            return self._done.get_nowait()
        except Empty:
            return None

    def close(self) -> None:
        try:
            while True:
                self._tasks.get_nowait()  # what nobody has begun
        except Empty:
            pass
        for _ in self._threads:
            self._tasks.put(None)
        for worker, thread in zip(self._workers, self._threads):
            while thread.is_alive():
                worker.stop()
                thread.join(_STOP)


def _work(worker: Any, tasks: SimpleQueue[Group | None], done: SimpleQueue[Group]) -> None:
    try:
        while (group := tasks.get()) is not None:
            worker.run(group)
            done.put(group)
            del group  # while waiting, keep no items
    finally:
        worker.end()
