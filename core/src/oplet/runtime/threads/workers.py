"""The threads of one interpreter: they are started when a kernel first has work for them, and end with the interpreter.

numpy and BLAS let go of Python's lock while they compute, so that threads of one process do run at once. What is to run at
once is cut into as many parts as there are threads; the thread that invokes takes the first part itself.

Where Linux wakes a thread on the core of the one that wakes it, though another idles, the two take turns, and threads that sleep
most of the time are never moved apart. A thread that finds itself there therefore leaves, once in a while, and stays away on its
own as long as its new core has nothing else to do.

While a thread does a part, `oplet.checkpoint` and `oplet.charge` ask there what they ask in the thread that invokes.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

from oplet.ops.checkpoint import Meter, current_meter, swap_meter
from oplet.ops.node import Thunk
from oplet.runtime.threads.numpy_settings import apply_numpy_settings

__all__ = ["Workers"]

#: A part of the work, the limits of the run that it belongs to, on which core the thread runs that wants it done, and where to say
#: that it is, with the error if it failed.
_Task = tuple[Thunk, "Meter | None", int, "SimpleQueue[BaseException | None]"]

#: Seconds between two moves; a core that is busy with other programs lets a thread wait for about ten milliseconds.
_BETWEEN_MOVES = 1.0


class Workers:
    """Runs parts of a kernel's work at once.

    Args:
        count: threads, the caller's own included.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._tasks: SimpleQueue[_Task | None] | None = None
        self._process = 0

    def run(self, parts: Sequence[Thunk]) -> None:
        """Run the parts, and return when all are done. What ends the run (a deadline, `cancel`) ends each of them at its next checkpoint.

        Raises:
            Exception: what a part raised, the first of them.
        """
        first, *others = parts
        tasks = self._tasks
        if tasks is None or self._process != os.getpid():  # a forked process has none of its parent's threads
            tasks = self._start()
        done: SimpleQueue[BaseException | None] = SimpleQueue()
        core, meter = _current_core(), current_meter()
        for part in others:
            tasks.put((part, meter, core, done))
        failure: BaseException | None = None
        try:
            first()
        except BaseException as error:  # the others still write into the same memory: wait for them whatever happened
            failure = error
        outcomes = [done.get() for _ in others]
        failure = next((error for error in [failure, *outcomes] if error is not None), None)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the threads; the next `run` starts others."""
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            for _ in range(self._count - 1):
                tasks.put(None)

    def _start(self) -> SimpleQueue[_Task | None]:
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
        swap_meter(None)  # before anybody learns that it is done
        done.put(failure)
        del task, part, meter, done, failure  # while waiting, hold nothing of an interpreter that may be closed meanwhile


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
    """Move this thread to another core, if it may use any."""
    if sys.platform != "linux":
        return
    usable = os.sched_getaffinity(0)
    if others := usable - {core}:
        os.sched_setaffinity(0, others)
        os.sched_setaffinity(0, usable)
