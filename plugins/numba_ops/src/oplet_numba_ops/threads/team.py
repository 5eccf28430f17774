"""Threads that do parts of a kernel's work at once, and stay in machine code between one kernel and the next.

A step of a thunk is a job: a kernel and as many blocks of arguments as the work has parts. The thread that invokes posts the job
to its helpers and does parts itself until none is left, then waits for those that helpers are still at. A helper spins, without
Python's lock, until there is a job for it. After a millisecond or so without one it goes to sleep, in machine code too where the C
library has semaphores: with Python's lock to take first, which the thread that invokes gives up for no longer than a kernel runs,
it would miss much of a model's run. It is woken when a job is posted, but nobody waits for it: whatever a helper does not take,
the thread that invokes does itself.

A step of many parts is long: it is posted a few parts at a time, and between them the run can be stopped (`oplet.checkpoint`).

So nothing depends on helpers being there: not in a forked process, which has none of its parent's threads, not while another
interpreter has posted its job over this one, not when Python ends. `sharing` says why that is right.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oplet import checkpoint
from oplet_numba_ops.compiling.kernels import Entry, Kernel
from oplet_numba_ops.compiling.memory import Array, aligned
from oplet_numba_ops.overriding import Thunk
from oplet_numba_ops.threads.jobs import BOX, JOB_WORDS, MOST_PARTS, RUN, SERVE, TEAM
from oplet_numba_ops.threads.splitting import slots, together

__all__ = ["MOST_PARTS", "Step", "ready", "thunk"]

_MOST_HELPERS = 63
#: How long a helper waits in machine code, in seconds: longer than numpy's kernels between two compiled ones usually take.
_PATIENCE = 1.5e-3


class _Helper:
    """A thread that helps, if it is awake.

    Args:
        team: the team's address.
        number: 1 and up.
    """

    def __init__(self, team: int, number: int) -> None:
        self._team, self._number = team, number
        self._box = team + TEAM["boxes"] + (number - 1) * BOX["size"]
        self._has_semaphore = bool(_word(team + TEAM["wait"]))
        self.forget()

    def forget(self) -> None:
        """There is no such thread: not yet, or not in this process, which was forked."""
        self.asleep = True
        self._thread: threading.Thread | None = None
        self._bell = threading.Lock()
        self._starting = threading.Lock()
        self._bell.acquire()
        if self._has_semaphore:
            _make_semaphore(self._box + BOX["bell"])

    @property
    def sleeps(self) -> bool:
        """Whether it looks for jobs no more, wherever it is to be woken from."""
        return self.asleep or bool(_word(self._box + BOX["sleeps"]))

    def wake(self) -> None:
        """Have it look for jobs; it may take as long as it likes to do so. One that sleeps in machine code is woken from there."""
        self.asleep = False
        if self._thread is not None:
            with suppress(RuntimeError):  # another thread rang already
                self._bell.release()
            return
        with self._starting:
            if self._thread is None and not _word(self._box + BOX["end"]):
                thread = threading.Thread(target=self._work, name=f"oplet-numba-{self._number}", daemon=True)
                with suppress(RuntimeError):  # there can be no more threads, or Python ends: then without help
                    thread.start()
                    self._thread = thread

    def end(self) -> None:
        """Have it leave machine code for good, before Python takes that away, and wait for it."""
        _set_word(self._box + BOX["end"], 1)
        if self._thread is not None:
            with suppress(RuntimeError):
                self._bell.release()
            if self._has_semaphore:
                ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_word(self._team + TEAM["post"]))(self._box + BOX["bell"])
            self._thread.join(1)

    def _work(self) -> None:
        serve = SERVE.compiled()
        home = _processors()
        _set_word(self._box + BOX["watches"], int(len(home) > 1 and _word(self._team + TEAM["where"]) != 0))
        patience = self._patience(serve)
        while not _word(self._box + BOX["end"]):
            serve(self._team, self._box, self._number, patience, self._has_semaphore)
            if _word(self._box + BOX["moves"]):
                self._move(home)
                continue
            self.asleep = True
            self._bell.acquire()

    def _patience(self, serve: Callable[..., None]) -> int:
        """How many rounds of waiting make up the time for it."""
        rounds, seconds = 1000, 1.0
        for _ in range(3):
            start = time.perf_counter()
            serve(self._team, self._box, self._number, rounds, False)
            seconds = min(seconds, time.perf_counter() - start)
        return min(max(rounds, int(rounds * _PATIENCE / seconds)), 10**7)

    def _move(self, home: set[int]) -> None:
        """Go where the thread that posts is not. Systems that pack threads onto few processors would never let them run at once."""
        _set_word(self._box + BOX["moves"], 0)
        elsewhere = home - {_word(self._box + BOX["processor"])}
        try:
            os.sched_setaffinity(0, elsewhere)
        except (OSError, ValueError):
            _set_word(self._box + BOX["watches"], 0)


def _processors() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _set_word(address: int, value: int) -> None:
    ctypes.c_int64.from_address(address).value = value


def _symbol(name: str) -> int:
    """The address of a function of the C library, or 0."""
    import llvmlite.binding as llvm

    return llvm.address_of_symbol(name) or 0


def _make_semaphore(where: int) -> bool:
    """Make one that nobody posted; False where there is no such thing."""
    make = _symbol("sem_init")
    return bool(make) and ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint)(make)(where, 0, 0) == 0


def _for_ever(words: int) -> int:
    """The address of zeros that outlive Python's end, which helpers may be late to notice."""
    memory = aligned((words,), np.int64)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    return int(memory.ctypes.data)


class _Team:
    """All helpers of this process. The first serves thunks of two threads and more, the second those of three and more, and so on."""

    def __init__(self) -> None:
        self.address = _for_ever((TEAM["boxes"] + _MOST_HELPERS * BOX["size"]) // 8)
        functions = {"where": "sched_getcpu", "yield": "sched_yield"}
        if _symbol("sem_wait") and _symbol("sem_post") and _make_semaphore(self.address + TEAM["boxes"] + BOX["bell"]):
            functions |= {"wait": "sem_wait", "post": "sem_post"}
        for where, name in functions.items():
            _set_word(self.address + TEAM[where], _symbol(name))
        self.helpers = [_Helper(self.address, number + 1) for number in range(_MOST_HELPERS)]
        self._free: list[int] = []
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def take(self) -> int:
        """The address of a job that nobody uses."""
        try:
            return self._free.pop()
        except IndexError:
            start = _for_ever(32 * JOB_WORDS)
            others = [start + i * 8 * JOB_WORDS for i in range(1, 32)]
            self._free += others
            return start

    def give_back(self, jobs: list[int]) -> None:
        """Their thunk is gone."""
        self._free += jobs

    def _forget(self) -> None:
        for helper in self.helpers:
            helper.forget()

    def _end(self) -> None:
        for helper in self.helpers:
            helper.end()


@functools.cache
def _team() -> _Team:
    return _Team()


class Step(NamedTuple):
    """A kernel and the arguments of each part of its work; no part may read or write what another one writes.

    Parts of the same slot of `shares.Many` are done one after the other, and may share scratch memory, or go on where the one
    before stopped.
    """

    kernel: Kernel
    parts: Sequence[tuple[Any, ...]]


def ready(*kernels: Kernel) -> None:
    """Compile, in a plan, what its thunk is going to need.

    Raises:
        CompileError: numba or LLVM refuses it.
    """
    for one in kernels:
        if not one.has_entry:
            checkpoint()  # it may take a second
        one.entry()
    RUN.compiled()
    SERVE.compiled()


def thunk(steps: Sequence[Step], threads: int = 1, *arrays: Array) -> Thunk:
    """What runs the steps in order, the parts of a step at once on so many threads. It keeps the arguments alive.

    Args:
        steps: what is to be done. Where a step has more parts than short work has, the run can be stopped between them.
        arrays: what else to keep alive, for arguments that are addresses.
    """
    threads = min(threads, _MOST_HELPERS + 1)
    most = together(threads)
    calls: list[Thunk] = []
    short: list[Step] = []
    for step in steps:
        several = min(most, slots(step.parts))
        if len(step.parts) <= several:
            short.append(step)
            continue
        if short:
            calls.append(_short(short, threads, arrays))
            short = []
        calls.append(_long(step, threads, several, arrays))
    if short or not calls:
        calls.append(_short(short, threads, arrays))
    return calls[0] if len(calls) == 1 else partial(_one_by_one, calls)


def _one_by_one(calls: Sequence[Thunk]) -> None:
    for call in calls:
        call()


def _short(steps: Sequence[Step], threads: int, arrays: tuple[Array, ...]) -> Thunk:
    """Steps that are run in one go."""
    run = RUN.compiled()
    team = _team()
    shared = threads > 1 and any(len(step.parts) > 1 for step in steps)
    keep: list[Any] = [*arrays]
    fields = []
    for kernel, parts in steps:
        entry = kernel.entry()
        words: Array = np.array([entry.pack(arguments) for arguments in parts], np.int64)
        keep += [entry, words, parts]
        fields.append(_fields(entry, words, threads))
    if shared:
        jobs = np.array([team.take() for _ in steps], np.int64)
        for job, values in zip(jobs.tolist(), fields):
            _write(job, values)
    else:
        own = np.array([(*values, *[0] * (JOB_WORDS - len(values))) for values in fields], np.int64)
        jobs = own.ctypes.data + own.strides[0] * np.arange(len(steps))
        keep.append(own)
    keep.append(jobs)
    call = partial(run, team.address, jobs.ctypes.data, len(jobs))
    if not shared:
        call.keep = keep  # type: ignore[attr-defined]
        return call
    helpers = team.helpers[: max(min(threads, len(step.parts)) for step in steps) - 1]

    def run_together(_keep: Any = keep) -> None:
        for helper in helpers:
            if helper.asleep:
                helper.wake()
        call()

    weakref.finalize(run_together, team.give_back, jobs.tolist()).atexit = False
    return run_together


def _long(step: Step, threads: int, several: int, arrays: tuple[Array, ...]) -> Thunk:
    """A step that is run `several` parts at a time, by a job that is posted again and again."""
    run, entry, parts = RUN.compiled(), step.kernel.entry(), step.parts
    team = _team()
    helpers = team.helpers[: min(threads, several) - 1]
    job = team.take()
    jobs = np.array([job], np.int64)
    where = jobs.ctypes.data

    def run_in_turn(_keep: Any = (jobs, arrays)) -> None:
        for start in range(0, len(parts), several):
            if start:
                checkpoint()
            some = parts[start : start + several]
            words: Array = np.array([entry.pack(arguments) for arguments in some], np.int64)
            _write(job, _fields(entry, words, threads))  # nobody is at it: all parts of the batch before are done
            for helper in helpers:
                if helper.asleep:
                    helper.wake()
            run(team.address, where, 1)

    weakref.finalize(run_in_turn, team.give_back, [job]).atexit = False
    return run_in_turn


def _fields(entry: Entry, words: Array, threads: int) -> tuple[int, ...]:
    """The words of a job that its maker writes; `words` has the arguments of a part in each row."""
    return entry.address, words.ctypes.data, words.strides[0], len(words), min(threads, len(words))


def _write(job: int, fields: Sequence[int]) -> None:
    for position, value in enumerate(fields):
        _set_word(job + 8 * position, value)
