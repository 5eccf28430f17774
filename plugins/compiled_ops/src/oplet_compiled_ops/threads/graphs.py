"""Dependency graph of the jobs of fused nodes, derived from the memory that each node reads and writes.

A job (one kernel with its arguments) waits for the earlier jobs that write what it reads or writes, or read what it writes: for
its inputs, and, where tensors share memory, for the last readers of the tensor that it overwrites. Whatever the threads do, each
job then reads what it would read if the jobs ran one after the other, so that results are the same bits. Jobs of one thread that
follow one another, with nothing beside them, are merged into one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet.records import Row
from oplet_compiled_ops.library.memory import Array

__all__ = ["Spans", "Task", "Work", "links", "tasks"]

#: Pieces of memory, each as its first address and that after its last byte.
Spans = Sequence[tuple[int, int]]
#: More thunks than these are not made a graph: the time to compare their memory grows with the square.
_MOST = 1024


class Work(Row):
    """The jobs (kernel calls) of one node, and the memory that they read and write.

    Attributes:
        jobs: the jobs' addresses, in order; each waits for the one before.
        is_shared: for each job, whether several threads share its parts.
        reads: the memory that is read: pairs of the first address and the one after the last byte.
        writes: the memory that is written, in the same form.
    """

    jobs: Sequence[int]
    is_shared: Sequence[bool]
    reads: Spans
    writes: Spans


class Task(Row):
    """Jobs (kernel calls) that one thread runs in sequence, or a single job whose parts several threads share."""

    jobs: list[int]  #: The jobs' addresses.
    is_shared: bool  #: Whether several threads share the job.
    needs: list[int]  #: The positions in the list of tasks of those that must be finished before.


def tasks(works: Sequence[Work]) -> list[Task] | None:
    """Return the tasks of nodes that would otherwise run one after the other; None if running some in parallel gains nothing."""
    works = [work for work in works if work.jobs]
    if len(works) > _MOST:
        return None
    needed = _needed([(work.reads, work.writes) for work in works])
    jobs: list[tuple[int, bool, list[int]]] = []
    last: list[int] = []
    for work, needs in zip(works, needed):
        waits = [last[number] for number in needs]
        for job, is_shared in zip(work.jobs, work.is_shared):
            jobs.append((job, is_shared, waits))
            waits = [len(jobs) - 1]
        last.append(len(jobs) - 1)
    found = _chained(jobs)
    side_by_side = any(task.needs != [number - 1] for number, task in enumerate(found[1:], 1))
    return found if side_by_side or any(task.is_shared for task in found) else None


def _needed(touched: Sequence[tuple[Spans, Spans]]) -> list[list[int]]:
    """Return, for each node, the earlier nodes that it must wait for, as one writes memory that the other reads or writes.

    A node that another one of these already waits for is left out. `touched` has the memory that each node reads and writes.
    """
    reads, readers = _table([reads for reads, _ in touched])
    writes, writers = _table([writes for _, writes in touched])
    count = len(touched)
    conflicts: Array = np.zeros((count, count), bool)
    for (first, second), of_first, of_second in (
        ((writes, reads), writers, readers),
        ((writes, writes), writers, writers),
    ):
        overlap = (first[:, None, 0] < second[None, :, 1]) & (second[None, :, 0] < first[:, None, 1])
        one, other = np.nonzero(overlap)
        conflicts[of_first[one], of_second[other]] = True
        conflicts[of_second[other], of_first[one]] = True
    needed: list[list[int]] = []
    before: list[int] = []  # for each work, as bits, itself and all that come before it
    for number in range(count):
        known, needs = 1 << number, []
        for earlier in np.nonzero(conflicts[number, :number])[0][::-1].tolist():
            if not known >> earlier & 1:
                needs.append(earlier)
                known |= before[earlier]
        before.append(known)
        needed.append(needs)
    return needed


def _table(spans: Sequence[Spans]) -> tuple[Array, Array]:
    """Return all memory ranges as rows (start, end) of an array, and for each row the position in `spans` of the node that it is
    of.
    """
    rows = np.array([span for some in spans for span in some], np.int64).reshape(-1, 2)
    return rows, np.repeat(np.arange(len(spans)), [len(some) for some in spans])


def _chained(jobs: Sequence[tuple[int, bool, list[int]]]) -> list[Task]:
    """Return the jobs as tasks, where a chain becomes one task: jobs of one thread, each waiting only for the one before, and
    alone.

    `jobs` has for each job its address, whether several threads share it, and the positions of the jobs that it waits for.
    """
    followers = [0] * len(jobs)
    for _, _, needs in jobs:
        for number in needs:
            followers[number] += 1
    found: list[Task] = []
    place: list[int] = []
    for job, is_shared, needs in jobs:
        if len(needs) == 1 and not is_shared and followers[needs[0]] == 1 and not found[place[needs[0]]].is_shared:
            place.append(place[needs[0]])
            found[place[-1]].jobs.append(job)
            continue
        place.append(len(found))
        found.append(Task([job], is_shared, sorted({place[number] for number in needs})))
    return found


def links(needs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Invert the dependencies of tasks: from the positions that each task waits for (`needs`), return those that wait for it."""
    following: list[list[int]] = [[] for _ in needs]
    for number, some in enumerate(needs):
        for other in some:
            following[other].append(number)
    return following
