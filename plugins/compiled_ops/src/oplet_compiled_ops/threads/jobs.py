"""Machine code of the thread pool: posts, runs and finishes jobs (one kernel and its arguments, in parts) that several threads
share.

Jobs run one after the other (`RUN`), or as a graph (`RUN_GRAPH`, made by `graphs`): there a job is posted by the thread that
finishes the last of the jobs that it waits for, so that no thread waits for another between two jobs, and independent jobs run
side by side.

Why this is correct: a job has one word with a bit for each part that no thread has taken (free), and one that counts the parts
that are not done. The posting thread writes both, the free parts last; a part belongs to the thread that clears its bit. A thread
that comes late, with the address of an old job, either finds no bit, or a bit of the job that has this address now: it reads
kernel and arguments after it has cleared the bit, and they cannot change then, since the posting thread waits until the part is
done and keeps the arrays alive. A job's links to others of its graph are read before its last part is counted as done, and the
graph's jobs do not change until each was counted as finished by the thread that ran its last part, after that thread posted the
jobs that waited for it. The memory of jobs and of graphs' lists of jobs is never freed, only reused for other jobs, so that a
late thread always reads a job. Threads prefer parts of their own share, which is the same in each kernel, since its memory is in
their cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import emitted, inlined

__all__ = [
    "BOX",
    "CHAIN",
    "GRAPH_WORDS",
    "HEAD_WORDS",
    "JOB_WORDS",
    "LINK_WORDS",
    "MOST_PARTS",
    "RUN",
    "RUN_GRAPH",
    "SERVE",
    "TEAM",
    "run_alone",
]

#: The most parts of a job: a word has a bit for each, and its sign stays clear.
MOST_PARTS = 62

# Byte offsets in a job: the kernel, the first part's arguments, the stride to the next part's, the number of parts, the number of
# threads; for a job of a graph the graph, the addresses of the jobs that wait for it, their number, the number of jobs that it waits
# for; and, in a cache line of their own, since threads compete for them, the free parts, the number of parts that are not done, the
# number of jobs that it still waits for, and the jobs that wait for it, which only the thread that finishes it reads.
_FUNCTION, _WORDS, _STRIDE, _COUNT, _THREADS, _GRAPH, _NEXTS, _NEEDS = 0, 8, 16, 24, 32, 40, 48, 56
_FREE, _PENDING, _WAITS, _NEXT, _JOB_BYTES = 64, 72, 80, 88, 128
# Byte offsets in a graph: the number of its jobs that are not finished; in a second cache line the position of the first of them, for
# helpers to look from; in a third one the numbers of jobs and of helpers; then the jobs' addresses, in an order in which they may run.
_LEFT, _LOW, _JOBS, _HELPERS, _LIST = 0, 64, 128, 136, 192
#: The most jobs of a graph, from the first that is not finished on, that a thread looks through for one with a free part.
_AHEAD = 64
# Byte offsets in a helper's mailbox: the job, the processor of the posting thread, whether the helper is to check that processor, the
# graph;
# in a cache line of their own whether it is to end, whether it returned in order to move, and whether it sleeps; in a third one the
# semaphore that it waits for.
_POSTED, _PROCESSOR, _WATCHES, _SHOWN, _END, _MOVES, _SLEEPS, _BELL, _BOX_BYTES = 0, 8, 16, 24, 64, 72, 80, 128, 192
# Byte offsets in the team: the C library's functions that return the current processor, yield it, wait for a semaphore and post
# one, or 0; then the mailboxes.
_WHERE, _YIELD, _WAIT, _POST, _BOXES = 0, 8, 16, 24, 128

#: The words of a job, and those that its maker writes, its first ones. A job of one thread needs no more.
JOB_WORDS, HEAD_WORDS = _JOB_BYTES // 8, 5
#: The words of a job that only graphs use: graph, number of jobs that wait for it, number of jobs that it waits for, and their address.
LINK_WORDS = _GRAPH // 8, _NEXTS // 8, _NEEDS // 8, _NEXT // 8
#: The words of a graph: the number of jobs, that of helpers, and the first job's address.
GRAPH_WORDS = _JOBS // 8, _HELPERS // 8, _LIST // 8
#: Offsets by name.
BOX = {
    "processor": _PROCESSOR,
    "watches": _WATCHES,
    "end": _END,
    "moves": _MOVES,
    "sleeps": _SLEEPS,
    "bell": _BELL,
    "size": _BOX_BYTES,
}
TEAM = {"where": _WHERE, "yield": _YIELD, "wait": _WAIT, "post": _POST, "boxes": _BOXES}

ask = emitted("atomics:ask")
ask_about = emitted("atomics:ask_about")
enter = emitted("atomics:enter")
highest_bit = emitted("atomics:highest_bit")
load = emitted("atomics:load")
lowest_bit = emitted("atomics:lowest_bit")
pause = emitted("atomics:pause")
store = emitted("atomics:store")
take_away = emitted("atomics:take_away")
take_bits = emitted("atomics:take_bits")

_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)


@_inlined
def _share(job, number):  # type: ignore[no-untyped-def]
    first = min(number * load(job + _COUNT) // max(load(job + _THREADS), 1), MOST_PARTS)
    while True:
        free = load(job + _FREE)
        if free == 0:
            return
        ahead = (free >> first) << first
        part = lowest_bit(ahead) if ahead != 0 else highest_bit(free)
        bit = 1 << part
        if take_bits(job + _FREE, bit) & bit:
            enter(load(job + _FUNCTION), load(job + _WORDS) + part * load(job + _STRIDE))
            graph = load(job + _GRAPH)
            if take_away(job + _PENDING, 1) == 1 and graph != 0:
                first = load(job + _NEXT)
                for position in range(load(job + _NEXTS)):
                    other = load(first + 8 * position)
                    if take_away(other + _WAITS, 1) == 1:
                        store(other + _FREE, (1 << load(other + _COUNT)) - 1)
                take_away(graph + _LEFT, 1)


@_inlined
def _ready(graph, first):  # type: ignore[no-untyped-def]
    """Return the address of a job of the graph that has parts which no thread has taken, searching from position `first`; 0 if
    none.
    """
    for position in range(first, min(first + _AHEAD, load(graph + _JOBS))):
        job = load(graph + _LIST + 8 * position)
        if load(job + _FREE) != 0:
            return job
    return 0


@_inlined
def _wake(team, helpers):  # type: ignore[no-untyped-def]
    for helper in range(helpers):
        box = team + _BOXES + helper * _BOX_BYTES
        if load(box + _SLEEPS) != 0:
            store(box + _SLEEPS, 0)
            ask_about(load(team + _POST), box + _BELL)


@kernel("void(i8, i8, i8)")
def RUN(team, jobs, count):  # type: ignore[no-untyped-def]
    """Run `count` jobs one after the other, each with the help of the worker threads that it asks for.

    Args:
        team: the address of the thread pool's memory.
        jobs: the address of an array of the jobs' addresses.
        count: the number of jobs.
    """
    for step in range(count):
        job = load(jobs + 8 * step)
        parts, threads = load(job + _COUNT), load(job + _THREADS)
        if threads == 1:
            for part in range(parts):
                enter(load(job + _FUNCTION), load(job + _WORDS) + part * load(job + _STRIDE))
            continue
        store(job + _PENDING, parts)
        store(job + _FREE, (1 << parts) - 1)
        processor = -1
        if load(team + _WHERE) != 0:
            processor = ask(load(team + _WHERE))
        for helper in range(threads - 1):
            box = team + _BOXES + helper * _BOX_BYTES
            store(box + _PROCESSOR, processor)
            store(box + _POSTED, job)
            if load(box + _SLEEPS) != 0:
                store(box + _SLEEPS, 0)
                ask_about(load(team + _POST), box + _BELL)
        _share(job, 0)
        spins = 0
        while load(job + _PENDING) > 0:
            spins += 1
            if spins > 2000 and load(team + _YIELD) != 0:
                ask(load(team + _YIELD))  # a helper may have lost its processor to another process, or to this thread
            pause()


@_inlined
def run_alone(jobs, count):  # type: ignore[no-untyped-def]
    """Run `count` jobs in order on this thread only; `jobs` is the address of an array of their addresses."""
    for step in range(count):
        job = load(jobs + 8 * step)
        for part in range(load(job + _COUNT)):
            enter(load(job + _FUNCTION), load(job + _WORDS) + part * load(job + _STRIDE))


@kernel("void(i8, i8)")
def CHAIN(jobs, count):  # type: ignore[no-untyped-def]
    """Run `count` jobs in order on this thread; as a kernel itself, it lets one job of a graph stand for several."""
    run_alone(jobs, count)


@kernel("void(i8, i8)")
def RUN_GRAPH(team, graph):  # type: ignore[no-untyped-def]
    """Run a graph's jobs with the help of the worker threads, each as soon as those that it waits for are finished.

    `team` and `graph` are the addresses of the thread pool's and of the graph's memory.
    """
    count, helpers = load(graph + _JOBS), load(graph + _HELPERS)
    store(graph + _LEFT, count)
    store(graph + _LOW, 0)
    for position in range(count):  # all of them before one is posted
        job = load(graph + _LIST + 8 * position)
        store(job + _PENDING, load(job + _COUNT))
        store(job + _WAITS, load(job + _NEEDS))
    for position in range(count):
        job = load(graph + _LIST + 8 * position)
        if load(job + _NEEDS) == 0:
            store(job + _FREE, (1 << load(job + _COUNT)) - 1)
    processor = -1
    if load(team + _WHERE) != 0:
        processor = ask(load(team + _WHERE))
    for helper in range(helpers):
        box = team + _BOXES + helper * _BOX_BYTES
        store(box + _PROCESSOR, processor)
        store(box + _SHOWN, graph)
    low = seen = spins = 0
    while low < count:
        if load(load(graph + _LIST + 8 * low) + _PENDING) == 0:
            low += 1
            continue
        if low != seen:
            store(graph + _LOW, low)
            seen = low
        job = _ready(graph, low)
        if job != 0:
            _wake(team, helpers)
            _share(job, 0)
            spins = 0
            continue
        spins += 1
        if spins > 2000 and load(team + _YIELD) != 0:
            ask(load(team + _YIELD))
        pause()
    while load(graph + _LEFT) > 0:  # a helper has finished the last job, and is about to say so
        spins += 1
        if spins > 2000 and load(team + _YIELD) != 0:
            ask(load(team + _YIELD))
        pause()
    for helper in range(helpers):
        box = team + _BOXES + helper * _BOX_BYTES
        if load(box + _SHOWN) == graph:
            store(box + _SHOWN, 0)


@kernel("void(i8, i8, i8, i8, i8)")
def SERVE(team, box, number, patience, sleeps):  # type: ignore[no-untyped-def]
    """Run the loop of a worker thread: take parts of the jobs and graphs whose addresses are posted to its mailbox.

    A job that is posted just before the worker flags itself as asleep does not wake it; the next job does.

    Args:
        team: the address of the thread pool's memory.
        box: the address of the worker's mailbox.
        number: the worker's number, from 1; it takes parts of its own share of a job first.
        patience: the rounds of the loop without work after which the worker sleeps or returns.
        sleeps: whether it sleeps on a semaphore then, until it is woken; otherwise it returns.
    """
    idle = 0
    while load(box + _END) == 0:
        if idle >= patience:
            if sleeps == 0:
                return
            store(box + _SLEEPS, 1)
            ask_about(load(team + _WAIT), box + _BELL)
            idle = 0
        job, graph = load(box + _POSTED), load(box + _SHOWN)
        if job == 0 or load(job + _FREE) == 0:
            job = 0
            if graph != 0:
                job = _ready(graph, load(graph + _LOW))
        if job != 0:
            if load(box + _WATCHES) != 0 and ask(load(team + _WHERE)) == load(box + _PROCESSOR):
                store(box + _MOVES, 1)
                return
            _share(job, number)
            idle = 0
        else:
            idle += 1
            pause()
            if idle > 1000 and idle & 15 == 0 and load(team + _YIELD) != 0:
                ask(load(team + _YIELD))  # the wait may be long: let other threads use this processor
