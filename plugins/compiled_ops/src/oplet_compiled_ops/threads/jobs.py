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

from oplet_compiled_ops.library.lazy import emitted, inlined

from oplet_compiled_ops.threads import (  # isort: skip
    AHEAD, BELL, BOX_BYTES, BOXES, COUNT, END, FREE, FUNCTION, GRAPH, HELPERS, JOBS, LEFT, LIST, LOW, MOST_PARTS, MOVES, NEEDS, NEXT,
    NEXTS, PENDING, POST, POSTED, PROCESSOR, SHOWN, SLEEPS, STRIDE, THREADS, WAIT, WAITS, WATCHES, WHERE, WORDS, YIELD,
)  # fmt: skip

__all__ = ["CHAIN", "RUN", "RUN_GRAPH", "SERVE", "run_alone"]

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
    first = min(number * load(job + COUNT) // max(load(job + THREADS), 1), MOST_PARTS)
    while True:
        free = load(job + FREE)
        if free == 0:
            return
        ahead = (free >> first) << first
        part = lowest_bit(ahead) if ahead != 0 else highest_bit(free)
        bit = 1 << part
        if take_bits(job + FREE, bit) & bit:
            enter(load(job + FUNCTION), load(job + WORDS) + part * load(job + STRIDE))
            graph = load(job + GRAPH)
            if take_away(job + PENDING, 1) == 1 and graph != 0:
                first = load(job + NEXT)
                for position in range(load(job + NEXTS)):
                    other = load(first + 8 * position)
                    if take_away(other + WAITS, 1) == 1:
                        store(other + FREE, (1 << load(other + COUNT)) - 1)
                take_away(graph + LEFT, 1)


@_inlined
def _ready(graph, first):  # type: ignore[no-untyped-def]
    """Return the address of a job of the graph that has parts which no thread has taken, searching from position `first`; 0 if
    none.
    """
    for position in range(first, min(first + AHEAD, load(graph + JOBS))):
        job = load(graph + LIST + 8 * position)
        if load(job + FREE) != 0:
            return job
    return 0


@_inlined
def _wake(team, helpers):  # type: ignore[no-untyped-def]
    for helper in range(helpers):
        box = team + BOXES + helper * BOX_BYTES
        if load(box + SLEEPS) != 0:
            store(box + SLEEPS, 0)
            ask_about(load(team + POST), box + BELL)


def RUN(team, jobs, count):  # type: ignore[no-untyped-def]
    """Run `count` jobs one after the other, each with the help of the worker threads that it asks for.

    Args:
        team: the address of the thread pool's memory.
        jobs: the address of an array of the jobs' addresses.
        count: the number of jobs.
    """
    for step in range(count):
        job = load(jobs + 8 * step)
        parts, threads = load(job + COUNT), load(job + THREADS)
        if threads == 1:
            for part in range(parts):
                enter(load(job + FUNCTION), load(job + WORDS) + part * load(job + STRIDE))
            continue
        store(job + PENDING, parts)
        store(job + FREE, (1 << parts) - 1)
        processor = -1
        if load(team + WHERE) != 0:
            processor = ask(load(team + WHERE))
        for helper in range(threads - 1):
            box = team + BOXES + helper * BOX_BYTES
            store(box + PROCESSOR, processor)
            store(box + POSTED, job)
            if load(box + SLEEPS) != 0:
                store(box + SLEEPS, 0)
                ask_about(load(team + POST), box + BELL)
        _share(job, 0)
        spins = 0
        while load(job + PENDING) > 0:
            spins += 1
            if spins > 2000 and load(team + YIELD) != 0:
                ask(load(team + YIELD))  # a helper may have lost its processor to another process, or to this thread
            pause()


@_inlined
def run_alone(jobs, count):  # type: ignore[no-untyped-def]
    """Run `count` jobs in order on this thread only; `jobs` is the address of an array of their addresses."""
    for step in range(count):
        job = load(jobs + 8 * step)
        for part in range(load(job + COUNT)):
            enter(load(job + FUNCTION), load(job + WORDS) + part * load(job + STRIDE))


def CHAIN(jobs, count):  # type: ignore[no-untyped-def]
    """Run `count` jobs in order on this thread; as a kernel itself, it lets one job of a graph stand for several."""
    run_alone(jobs, count)


def RUN_GRAPH(team, graph):  # type: ignore[no-untyped-def]
    """Run a graph's jobs with the help of the worker threads, each as soon as those that it waits for are finished.

    `team` and `graph` are the addresses of the thread pool's and of the graph's memory.
    """
    count, helpers = load(graph + JOBS), load(graph + HELPERS)
    store(graph + LEFT, count)
    store(graph + LOW, 0)
    for position in range(count):  # all of them before one is posted
        job = load(graph + LIST + 8 * position)
        store(job + PENDING, load(job + COUNT))
        store(job + WAITS, load(job + NEEDS))
    for position in range(count):
        job = load(graph + LIST + 8 * position)
        if load(job + NEEDS) == 0:
            store(job + FREE, (1 << load(job + COUNT)) - 1)
    processor = -1
    if load(team + WHERE) != 0:
        processor = ask(load(team + WHERE))
    for helper in range(helpers):
        box = team + BOXES + helper * BOX_BYTES
        store(box + PROCESSOR, processor)
        store(box + SHOWN, graph)
    low = seen = spins = 0
    while low < count:
        if load(load(graph + LIST + 8 * low) + PENDING) == 0:
            low += 1
            continue
        if low != seen:
            store(graph + LOW, low)
            seen = low
        job = _ready(graph, low)
        if job != 0:
            _wake(team, helpers)
            _share(job, 0)
            spins = 0
            continue
        spins += 1
        if spins > 2000 and load(team + YIELD) != 0:
            ask(load(team + YIELD))
        pause()
    while load(graph + LEFT) > 0:  # a helper has finished the last job, and is about to say so
        spins += 1
        if spins > 2000 and load(team + YIELD) != 0:
            ask(load(team + YIELD))
        pause()
    for helper in range(helpers):
        box = team + BOXES + helper * BOX_BYTES
        if load(box + SHOWN) == graph:
            store(box + SHOWN, 0)


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
    while load(box + END) == 0:
        if idle >= patience:
            if sleeps == 0:
                return
            store(box + SLEEPS, 1)
            ask_about(load(team + WAIT), box + BELL)
            idle = 0
        job, graph = load(box + POSTED), load(box + SHOWN)
        if job == 0 or load(job + FREE) == 0:
            job = 0
            if graph != 0:
                job = _ready(graph, load(graph + LOW))
        if job != 0:
            if load(box + WATCHES) != 0 and ask(load(team + WHERE)) == load(box + PROCESSOR):
                store(box + MOVES, 1)
                return
            _share(job, number)
            idle = 0
        else:
            idle += 1
            pause()
            if idle > 1000 and idle & 15 == 0 and load(team + YIELD) != 0:
                ask(load(team + YIELD))  # the wait may be long: let other threads use this processor
