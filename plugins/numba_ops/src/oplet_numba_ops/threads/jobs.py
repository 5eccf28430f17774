"""Jobs that several threads share, and how they do: the machine code of `team`.

Why this is right. A job has one word with a bit for each part that nobody has taken yet, and one that counts the parts that are
not done. Both are written by the thread that posts, the first word last; a part belongs to whoever cleared its bit. So a thread
that comes late, with a job that it saw long ago, finds no bit, or finds a bit of the job as it is now: it reads kernel and
arguments after it cleared the bit, when they cannot change, for whoever posted the job waits until its part is done, and keeps
the thunk alive with its arrays. The memory of jobs is never given back, but used for other thunks' jobs: for what a late thread
looks at is always a job. Threads prefer parts of their own share, the same in each kernel, for what is in their cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from oplet_numba_ops.compiling.kernels import kernel
from oplet_numba_ops.threads.atomics import (
    ask,
    ask_about,
    enter,
    highest_bit,
    load,
    lowest_bit,
    pause,
    store,
    take_away,
    take_bits,
)

__all__ = ["BOX", "JOB_WORDS", "MOST_PARTS", "RUN", "SERVE", "TEAM"]

#: Parts of a job, at most: a word has a bit for each, and its sign stays clear.
MOST_PARTS = 62

# Where words are, in bytes. Those of a job: the kernel, the first part's arguments, the way to the next part's, how many parts,
# for how many threads; in a line of the cache of their own, what threads fight for: the parts that are free, and how many are
# not done.
_FUNCTION, _WORDS, _STRIDE, _COUNT, _THREADS, _FREE, _PENDING, _JOB_BYTES = 0, 8, 16, 24, 32, 64, 72, 128
# A helper's mailbox: the job, the processor of the thread that posted it, whether the helper looks at that; in a line of its own
# whether it is to end, whether it came back in order to move, and whether it sleeps; in a third one the semaphore that it waits for.
_POSTED, _PROCESSOR, _WATCHES, _END, _MOVES, _SLEEPS, _BELL, _BOX_BYTES = 0, 8, 16, 64, 72, 80, 128, 192
# The team: the functions of the C library that say on which processor a thread is, that yield it, that wait for a semaphore and
# that post one, or 0; mailboxes follow.
_WHERE, _YIELD, _WAIT, _POST, _BOXES = 0, 8, 16, 24, 128

#: Words of a job. Whoever makes one writes the first five.
JOB_WORDS = _JOB_BYTES // 8
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

_inlined: Callable[..., Any] = numba.njit(error_model="numpy", boundscheck=False)


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
            take_away(job + _PENDING, 1)


@kernel("void(i8, i8, i8)")
def RUN(team, jobs, count):  # type: ignore[no-untyped-def]
    """Run jobs, whose addresses are at `jobs`, one after the other."""
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


@kernel("void(i8, i8, i8, i8, i8)")
def SERVE(team, box, number, patience, sleeps):  # type: ignore[no-untyped-def]
    """Help with what comes into a mailbox. When so many looks in a row found nothing, return, or sleep until somebody posts.

    Whoever posts a job just before the helper says that it sleeps does not wake it; the next job does.
    """
    idle = 0
    while load(box + _END) == 0:
        if idle >= patience:
            if sleeps == 0:
                return
            store(box + _SLEEPS, 1)
            ask_about(load(team + _WAIT), box + _BELL)
            idle = 0
        job = load(box + _POSTED)
        if job != 0 and load(job + _FREE) != 0:
            if load(box + _WATCHES) != 0 and ask(load(team + _WHERE)) == load(box + _PROCESSOR):
                store(box + _MOVES, 1)
                return
            _share(job, number)
            idle = 0
        else:
            idle += 1
            pause()
            if idle > 1000 and idle & 15 == 0 and load(team + _YIELD) != 0:
                ask(load(team + _YIELD))  # it may take a while: who else could use this processor?
