"""The worker threads of one interpreter: they are started when a kernel first has work for them, and end with the interpreter.

numpy and BLAS release Python's GIL while they compute, so that threads of one process run in parallel. A kernel's work is divided
into as many parts as there are threads; the thread that invokes runs the first part itself.

Linux may wake a worker on the core of the thread that wakes it, though another core is idle; the two then take turns, and the
scheduler never moves threads apart that sleep most of the time. A worker that finds itself there therefore moves to another core,
at most once a second, and stays there as long as that core is idle.

In a worker, `oplet.checkpoint` and `oplet.charge` use the meter of the thread that invokes.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any

from oplet.ops.ensure import Meter, current_meter, swap_meter
from oplet.ops.node import Thunk
from oplet.runtime.blas import apply_numpy_settings

if TYPE_CHECKING:
    from queue import SimpleQueue

__all__ = ["Workers"]

#: A part of the work, the meter of its run, the core of the thread that invokes, and the queue for the result: None or the error.
_Task = tuple[Thunk, "Meter | None", int, "SimpleQueue[BaseException | None]"]

#: Seconds between two moves of a worker; after a move to a core that is busy it waits for about ten milliseconds.
_BETWEEN_MOVES = 1.0


class Workers:
    """Runs the parts of a kernel's work in parallel.

    Args:
        count: the number of threads, the caller's own included.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._tasks: SimpleQueue[_Task | None] | None = None
        self._process = 0

    def run(self, parts: Sequence[Thunk]) -> None:
        """Run the parts, and return when all are done. A deadline or `cancel` ends each part at its next checkpoint.

        Raises:
            Exception: the error of the first part that failed.
        """
        from queue import SimpleQueue

        first, *others = parts
        tasks = self._tasks
        if tasks is None or self._process != os.getpid():  # a forked process does not have its parent's threads
            tasks = self._start()
        done: SimpleQueue[BaseException | None] = SimpleQueue()
        core, meter = _current_core(), current_meter()
        for part in others:
            tasks.put((part, meter, core, done))
        failure: BaseException | None = None
        try:
            first()
        except BaseException as error:  # the other parts still write into the same memory: wait for them first
            failure = error
        outcomes = [done.get() for _ in others]
        failure = next((error for error in [failure, *outcomes] if error is not None), None)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the threads; the next `run` starts new ones."""
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            for _ in range(self._count - 1):
                tasks.put(None)

    def _start(self) -> SimpleQueue[_Task | None]:
        from queue import SimpleQueue

        self._tasks = tasks = SimpleQueue[Any]()
        self._process = os.getpid()
        for number in range(1, self._count):
            Thread(target=_work, args=(tasks,), name=f"oplet-{number}", daemon=True).start()
        return tasks


def _work(tasks: SimpleQueue[_Task | None]) -> None:
    apply_numpy_settings()
    moved = 0.0
    while (task := tasks.get()) is not None:
        part, meter, core, done = task
        if core >= 0 and core == _current_core() and time.monotonic() > moved + _BETWEEN_MOVES:
            moved = time.monotonic()
            _move_off(core)
        failure: BaseException | None = None
        swap_meter(meter)
        try:
            part()
        except BaseException as error:
            failure = error
        swap_meter(None)  # before the caller goes on
        done.put(failure)
        del task, part, meter, done, failure  # while waiting, keep no references to an interpreter that may be closed meanwhile


def _find_current_core() -> Callable[[], int]:
    if sys.platform == "linux":
        try:
            found: Callable[[], int] = ctypes.PyDLL(None).sched_getcpu
            return found
        except (OSError, AttributeError):  # a C library without it
            pass
    return lambda: -1


_current_core = _find_current_core()


def _move_off(core: int) -> None:
    """Move this thread to another core than `core`, if it may use any other."""
    if sys.platform != "linux":
        return
    usable = os.sched_getaffinity(0)
    if others := usable - {core}:
        os.sched_setaffinity(0, others)
        os.sched_setaffinity(0, usable)
