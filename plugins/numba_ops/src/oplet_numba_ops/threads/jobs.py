"""Jobs that several threads share: the machine code of `team`, which posts, runs and finishes them.

Why this is correct: a job has one word with a bit for each part that is free, and one that counts the parts that are not done. The
posting thread writes both, the free parts last; a part belongs to the thread that clears its bit. A thread that comes late, with
the address of an old job, either finds no bit, or a bit of the job that is there now: it reads kernel and arguments after it has
cleared the bit, and they cannot change then, since the posting thread waits until the part is done and keeps the thunk with its
arrays alive. The memory of jobs is never freed, only reused for other jobs, so that a late thread always reads a job. Threads
prefer parts of their own share, which is the same in each kernel, since its memory is in their cache.
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

__all__ = ["BOX", "HEAD_WORDS", "JOB_WORDS", "MOST_PARTS", "RUN", "SERVE", "TEAM"]

#: The most parts of a job: a word has a bit for each, and its sign stays clear.
MOST_PARTS = 62

# Byte offsets in a job: the kernel, the first part's arguments, the stride to the next part's, the number of parts, the number of
# threads; and, in a cache line of their own, since threads compete for them, the free parts and the number of parts that are not
# done.
_FUNCTION, _WORDS, _STRIDE, _COUNT, _THREADS, _FREE, _PENDING, _JOB_BYTES = 0, 8, 16, 24, 32, 64, 72, 128
# Byte offsets in a helper's mailbox: the job, the processor of the posting thread, whether the helper is to check that processor;
# in a cache line of their own whether it is to end, whether it returned in order to move, and whether it sleeps; in a third one the
# semaphore that it waits for.
_POSTED, _PROCESSOR, _WATCHES, _END, _MOVES, _SLEEPS, _BELL, _BOX_BYTES = 0, 8, 16, 64, 72, 80, 128, 192
# Byte offsets in the team: the C library's functions that return the current processor, yield it, wait for a semaphore and post
# one, or 0; then the mailboxes.
_WHERE, _YIELD, _WAIT, _POST, _BOXES = 0, 8, 16, 24, 128

#: The words of a job, and those that its maker writes, its first ones. A job of one thread needs no more.
JOB_WORDS, HEAD_WORDS = _JOB_BYTES // 8, 5
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
    """Run parts of the jobs that come into a mailbox. After `patience` rounds without a job, return, or sleep until a job is
    posted.

    A job that is posted just before the helper marks itself as asleep does not wake it; the next job does.
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
                ask(load(team + _YIELD))  # the wait may be long: let other threads use this processor
