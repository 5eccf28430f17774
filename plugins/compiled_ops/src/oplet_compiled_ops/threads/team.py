"""The thread pool: workers run parts of kernels in parallel, and stay in machine code (spinning, then sleeping) between kernels.

A step (a kernel, and a block of arguments for each part of its work) becomes a job in memory. The thread that invokes the model
posts the job to the workers (`_Helper`) and runs parts itself until none is left, then waits for those that workers still run. A
worker spins, without the GIL, until there is a job. After about a millisecond without one it sleeps: in machine code where the C
library has semaphores, since a worker that needs the GIL to wake up would miss much of a model's run, as the thread that invokes
releases the GIL only while a kernel runs. A sleeping worker is woken when a job is posted, but nothing waits for it: parts that
workers do not take are run by the thread that invokes.

A step of many parts is posted a few parts at a time, and the run can be stopped between them (`oplet.checkpoint`).

So no result depends on the workers: not in a forked process, which has none of its parent's threads, not where another
interpreter has replaced this job in the workers' mailboxes by its own, not when Python ends. `jobs` explains why this is correct.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import time
import weakref
from _thread import allocate_lock
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import checkpoint
from oplet.records import Row
from oplet_compiled_ops.library.kernels import Entry, Kernel
from oplet_compiled_ops.library.memory import Array, aligned
from oplet_compiled_ops.library.opening import c_function
from oplet_compiled_ops.overriding import Thunk
from oplet_compiled_ops.shaping import COPY
from oplet_compiled_ops.threads import (
    BOX,
    CHAIN,
    GRAPH_WORDS,
    HEAD_WORDS,
    JOB_WORDS,
    MOST_PARTS,
    RUN,
    RUN_GRAPH,
    SERVE,
    TEAM,
)
from oplet_compiled_ops.threads.joining import Jobs, mark
from oplet_compiled_ops.threads.splitting import slots, together

if TYPE_CHECKING:
    from threading import Thread

__all__ = ["MOST_PARTS", "Step", "ready", "thunk"]

_MOST_HELPERS = 63
#: Seconds that a helper spins without a job: longer than numpy's kernels between two compiled ones usually take.
_PATIENCE = 1.5e-3


#: The words of a job after its head, which only graphs of jobs set.
_NO_LINKS = (0,) * (JOB_WORDS - HEAD_WORDS)


class _Helper:
    """A worker thread of the pool with its mailbox, the memory where jobs are posted to it.

    Args:
        team: the address of the thread pool's memory.
        number: the worker's number, 1 and up.
    """

    def __init__(self, team: int, number: int) -> None:
        self._team, self._number = team, number
        self._box = team + TEAM["boxes"] + (number - 1) * BOX["size"]
        self._has_semaphore = bool(_word(team + TEAM["wait"]))
        self.forget()

    def forget(self) -> None:
        """Reset the worker to one that has no thread yet: when it is made, and in a forked process, which has none of its
        parent's threads.
        """
        self.asleep = True
        self._thread: Thread | None = None
        self._bell = allocate_lock()
        self._starting = allocate_lock()
        self._bell.acquire()
        if self._has_semaphore:
            _make_semaphore(self._box + BOX["bell"])

    @property
    def sleeps(self) -> bool:
        """Return whether the worker sleeps, in machine code or in Python, and has to be woken."""
        return self.asleep or bool(_word(self._box + BOX["sleeps"]))

    def wake(self) -> None:
        """Wake the worker, or start its thread, without waiting until it is awake."""
        self.asleep = False
        if self._thread is not None:
            with suppress(RuntimeError):  # another thread has woken it already
                self._bell.release()
            return
        with self._starting:
            if self._thread is None and not _word(self._box + BOX["end"]):
                from threading import Thread  # imported late: most models run on one thread

                thread = Thread(target=self._work, name=f"oplet-numba-{self._number}", daemon=True)
                with suppress(RuntimeError):  # no more threads can be started, or Python ends: go on without help
                    thread.start()
                    self._thread = thread

    def end(self) -> None:
        """Make the worker leave machine code for good, and wait a second at most until its thread has ended, before Python
        unloads the code.
        """
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
        """Measure how many rounds of the worker's spin loop (`serve`) last about `_PATIENCE` seconds; return their number."""
        rounds, seconds = 1000, 1.0
        for _ in range(3):
            start = time.perf_counter()
            serve(self._team, self._box, self._number, rounds, False)
            seconds = min(seconds, time.perf_counter() - start)
        return min(max(rounds, int(rounds * _PATIENCE / seconds)), 10**7)

    def _move(self, home: set[int]) -> None:
        """Pin the worker to other processors than that of the posting thread, as some systems pack threads onto few processors.

        Args:
            home: the processors that the worker may use.
        """
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


def _make_semaphore(where: int) -> bool:
    """Initialize a C semaphore at the address `where`, with the value 0; return False if the C library has no semaphores."""
    make = c_function("sem_init")
    return bool(make) and ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint)(make)(where, 0, 0) == 0


def _for_ever(words: int) -> int:
    """Allocate `words` zeroed int64 that are never freed, as workers may read them until Python ends; return their address."""
    memory = aligned((words,), np.int64)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    return int(memory.ctypes.data)


class _Team:
    """The thread pool of the process. Worker 1 serves jobs of two threads and more, worker 2 those of three and more, etc."""

    def __init__(self) -> None:
        self.address = _for_ever((TEAM["boxes"] + _MOST_HELPERS * BOX["size"]) // 8)
        functions = {"where": "sched_getcpu", "yield": "sched_yield"}
        if c_function("sem_wait") and c_function("sem_post") and _make_semaphore(self.address + TEAM["boxes"] + BOX["bell"]):
            functions |= {"wait": "sem_wait", "post": "sem_post"}
        for where, name in functions.items():
            _set_word(self.address + TEAM[where], c_function(name))
        self.helpers: Sequence[_Helper] = [_Helper(self.address, number + 1) for number in range(_MOST_HELPERS)]
        self._free: list[int] = []
        self._lists: dict[int, list[int]] = {}
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def take(self) -> int:
        """Allocate memory for a job, reusing what was freed; return its address."""
        try:
            return self._free.pop()
        except IndexError:
            start = _for_ever(32 * JOB_WORDS)
            others = [start + i * 8 * JOB_WORDS for i in range(1, 32)]
            self._free += others
            return start

    def give_back(self, jobs: list[int]) -> None:
        """Free the memory of jobs, given by their addresses, that nobody will run again."""
        self._free += jobs

    def take_list(self, count: int) -> int:
        """Allocate memory for a graph of up to `count` jobs, reusing only that of freed graphs; return its address.

        A worker that comes late may still read the addresses of jobs in a freed graph.
        """
        size = 1 << count.bit_length()
        try:
            return self._lists.setdefault(size, []).pop()
        except IndexError:
            return _for_ever(GRAPH_WORDS[-1] + size)

    def give_back_list(self, count: int, graph: int) -> None:
        """Free the memory of the graph of `count` jobs at the address `graph`, which nobody will run again."""
        self._lists.setdefault(1 << count.bit_length(), []).append(graph)

    def _forget(self) -> None:
        for helper in self.helpers:
            helper.forget()

    def _end(self) -> None:
        for helper in self.helpers:
            helper.end()


@functools.cache
def _team() -> _Team:
    return _Team()


class Step(Row):
    """A kernel with the arguments of each part of its work. Parts run in parallel, so none may access what another one writes.

    Of the parts in a `splitting.Many`, those of the same slot are run one after the other; they may share scratch memory, or each
    may continue where the one before it stopped.
    """

    kernel: Kernel
    parts: Sequence[tuple[Any, ...]]


#: The kernels that all thunks need; none once they have been found.
_common = [RUN, RUN_GRAPH, SERVE, CHAIN, COPY]


class Turns(Row):
    """A step of very many parts, divided into portions between which a run can be stopped; it is the attribute `turns` of the
    function that runs it.
    """

    entry: Entry  #: The kernel's machine code.
    turns: Sequence[Sequence[tuple[Any, ...]]]  #: For each portion the arguments of its parts, which run together.
    kept: tuple[Array, ...]  #: Further arrays that the parts read.


def ready(*kernels: Kernel) -> None:
    """Find the machine code of kernels in the library, and of the thread pool's own ones; call it in `prepare`.

    Raises:
        MissingKernelError: the library lacks one of them.
    """
    for one in (*kernels, *_common):
        one.entry()
    _common.clear()


def thunk(steps: Sequence[Step], threads: int = 1, *arrays: Array) -> Thunk:
    """Return a function without arguments that runs the steps in order, the parts of each in parallel on `threads` threads.

    Args:
        steps: the steps. Between the parts of a step that has very many, the run can be stopped.
        threads: the number of threads, the caller's own included.
        arrays: further arrays that the function keeps alive, for arguments of steps that are addresses.
    """
    threads = min(threads, _MOST_HELPERS + 1)
    if threads == 1 and len(steps) == 1 and len(steps[0].parts) == 1:  # the usual case
        return _single(*steps[0], arrays)
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
    """Return a function that runs all steps in one call of machine code, in which the run cannot be stopped."""
    run = RUN.by_words()
    team = _team()
    shared = threads > 1 and any(len(step.parts) > 1 for step in steps)
    if not shared:
        return _alone(steps, run, team, arrays)
    keep: list[Any] = [*arrays]
    fields = []
    for kernel, parts in steps:
        entry = kernel.entry()
        words: Array = entry.rows(parts)
        keep += [entry, words, parts]
        fields.append(_fields(entry, words, threads))
    jobs = np.array([team.take() for _ in steps], np.int64)
    for job, values in zip(jobs.tolist(), fields):
        _write(job, values)
    arguments: Array = np.array([team.address, jobs.ctypes.data, len(jobs)], np.int64)
    keep += (jobs, arguments)
    call = partial(run, arguments.ctypes.data)
    helpers = team.helpers[: max(min(threads, len(step.parts)) for step in steps) - 1]

    def run_together(_keep: Any = keep) -> None:
        for helper in helpers:
            if helper.asleep:
                helper.wake()
        call()

    weakref.finalize(run_together, team.give_back, jobs.tolist()).atexit = False
    return mark(run_together, Jobs(run, team.address, jobs.tolist(), helpers, team, kept=tuple(keep)))


class _Call(partial[None]):
    """A function that calls machine code and keeps alive the memory that it reads; with __slots__ to save memory, as each node
    has one.
    """

    __slots__ = ("jobs", "joiner", "keep")
    jobs: Jobs
    joiner: Any
    keep: Any


def _alone(steps: Sequence[Step], run: Callable[[int], None], team: _Team, arrays: tuple[Array, ...]) -> Thunk:
    """Return a function that runs the parts of all steps on the calling thread; jobs and arguments are in one piece of memory."""
    passed: list[Array] = []
    rows: list[tuple[Entry, Any, int]] = []
    for kernel, parts in steps:
        entry = kernel.entry()
        passed += [arguments[at] for at, *_ in entry.arrays for arguments in parts]
        rows.append((entry, array("q", b"".join(map(entry.pack, parts))), len(parts)))
    count = len(rows)
    first = (JOB_WORDS + 1) * count
    last = first + sum(len(words) for _, words, _ in rows)
    memory = array("q", bytes(8 * (last + 3)))
    where, _ = memory.buffer_info()
    jobs = [where + 8 * JOB_WORDS * number for number in range(count)]
    at, own = first, 0
    for entry, words, several in rows:
        length = 8 * len(words) // several if several else 0
        memory[own : own + HEAD_WORDS] = array("q", (entry.address, where + 8 * at, length, several, min(1, several)))
        memory[at : at + len(words)] = words
        own += JOB_WORDS
        at += len(words)
    memory[own:first] = array("q", jobs)
    memory[last:] = array("q", (team.address, where + 8 * JOB_WORDS * count, count))
    call = _Call(run, where + 8 * last)
    call.keep = memory, *(entry for entry, _, _ in rows), *arrays, *passed
    return mark(call, Jobs(run, team.address, jobs, (), team, (), call.keep))


def _single(kernel: Kernel, parts: Sequence[tuple[Any, ...]], arrays: tuple[Array, ...]) -> Thunk:
    """Return a function that runs one step of one part on the calling thread; `_alone` does the same, but takes longer to build
    it.
    """
    run, team, entry = RUN.by_words(), _team(), kernel.entry()
    words = entry.pack(parts[0])
    memory = array("q", (entry.address, 0, len(words), 1, 1, *_NO_LINKS, 0, team.address, 0, 1))
    memory.frombytes(words)
    where, _ = memory.buffer_info()  # of its final size, which does not move any more
    memory[1], memory[JOB_WORDS], memory[JOB_WORDS + 2] = where + 8 * (JOB_WORDS + 4), where, where + 8 * JOB_WORDS
    call = _Call(run, where + 8 * (JOB_WORDS + 1))
    call.keep = memory, entry, *arrays, *[parts[0][at] for at, *_ in entry.arrays]
    return mark(call, Jobs(run, team.address, [where], (), team, (), call.keep))


def _long(step: Step, threads: int, several: int, arrays: tuple[Array, ...]) -> Thunk:
    """Return a function that runs a step of many parts, `several` at a time, by posting one job again and again with other
    arguments.
    """
    entry, parts = step.kernel.entry(), step.parts
    turns = [parts[start : start + several] for start in range(0, len(parts), several)]
    team = _team()
    helpers = team.helpers[: min(threads, several) - 1]
    job = team.take()
    jobs = np.array([job], np.int64)
    arguments: Array = np.array([team.address, jobs.ctypes.data, 1], np.int64)
    call = partial(RUN.by_words(), arguments.ctypes.data)

    def run_in_turn(_keep: Any = (jobs, arguments, arrays)) -> None:
        for number, some in enumerate(turns):
            if number:
                checkpoint()
            words: Array = entry.rows(some)
            _write(
                job, _fields(entry, words, threads)
            )  # all parts of the last batch are done, so that no thread reads the job now
            for helper in helpers:
                if helper.asleep:
                    helper.wake()
            call()

    weakref.finalize(run_in_turn, team.give_back, [job]).atexit = False
    result: Any = run_in_turn
    result.turns = Turns(entry, turns, arrays)
    return run_in_turn


def _fields(entry: Entry, words: Array, threads: int) -> tuple[int, ...]:
    """Return the first words of a job: kernel, arguments, distance of parts, parts, threads; `words` has a row of arguments per
    part.
    """
    return entry.address, words.ctypes.data, words.strides[0], len(words), min(threads, len(words))


def _write(job: int, fields: Sequence[int]) -> None:
    for position, value in enumerate(fields):
        _set_word(job + 8 * position, value)
