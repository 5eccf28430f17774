"""Fusion of neighbouring nodes into one call of machine code, which runs the jobs (kernel calls) of all of them, and the plain
copies that numpy kernels make in between.

With several threads the call runs a graph of the jobs (`graphs`), in which independent ones run side by side.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from oplet import StoredThunks
from oplet.kernels.arrays import Copies, spans
from oplet.records import Row
from oplet_compiled_ops.library.kernels import MissingKernelError
from oplet_compiled_ops.library.memory import Array, words_at
from oplet_compiled_ops.overriding import Thunk
from oplet_compiled_ops.shaping import COPY, COPY_WORDS, copy_arguments
from oplet_compiled_ops.threads import CHAIN, GRAPH_WORDS, HEAD_WORDS, JOB_WORDS, LINK_WORDS, RUN_GRAPH

if TYPE_CHECKING:
    from oplet_compiled_ops.threads.failing import Failure
    from oplet_compiled_ops.threads.graphs import Task, Work

__all__ = ["JOINER", "Crew", "Jobs", "mark"]

#: The most numbers of a copy that is taken from numpy, which copies large arrays as fast; but its call would part the neighbours.
_MOST = 1 << 20


class Jobs(Row):
    """The jobs (kernel calls) of a function that runs a node; an attribute of the function, by which it can be fused with others."""

    #: Runs jobs, given the address of three words: the thread pool, the array of the jobs' addresses, and their number.
    run: Callable[[int], None]
    team: int  #: The address of the thread pool's memory.
    addresses: Sequence[int]  #: The addresses of the jobs.
    helpers: Sequence[Any]  #: The worker threads that take part in the jobs.
    crew: Crew  #: The thread pool.
    failures: Sequence[Failure] = ()  #: How the node may fail.
    kept: tuple[Any, ...] = ()  #: Objects whose memory the jobs use, and which the function keeps alive.


class Crew(Protocol):
    """Protocol: the thread pool as the fusion of functions uses it, to avoid a circular import of `team`."""

    address: int

    @property
    def helpers(self) -> Sequence[Any]:
        """The worker threads."""

    def take(self) -> int:
        """Allocate memory for a job; return its address."""

    def give_back(self, jobs: list[int]) -> None:
        """Free the memory of jobs, given by their addresses; they must not run again."""

    def take_list(self, count: int) -> int:
        """Allocate memory for a graph of up to `count` jobs; return its address."""

    def give_back_list(self, count: int, graph: int) -> None:
        """Free the memory of the graph of `count` jobs at the address `graph`; it must not run again."""


def mark(thunk: Any, jobs: Jobs) -> Thunk:
    """Attach its jobs (kernel calls) to a function that runs a node, so that it can be fused with its neighbours; return the
    function.
    """
    thunk.joiner, thunk.jobs = JOINER, jobs
    result: Thunk = thunk
    return result


class _Copied:
    """The copies of a numpy kernel as jobs of machine code, for fusion; when it is called by itself, numpy makes them.

    Args:
        copies: the function by which numpy makes the copies.
        words: for each copy the arguments of the kernel COPY, one row of int64 each.
    """

    def __init__(self, copies: Copies, words: Array) -> None:
        self.joiner = JOINER
        self.copies = copies
        entry = COPY.entry()
        own = np.zeros((len(words), JOB_WORDS), np.int64)
        own[:, 0], own[:, 2], own[:, 3:5] = entry.address, words.strides[0], 1
        own[:, 1] = words.ctypes.data + words.strides[0] * np.arange(len(words))
        self.keep = entry, own, words
        self.addresses: Sequence[int] = (own.ctypes.data + own.strides[0] * np.arange(len(own))).tolist()

    def __call__(self) -> None:
        self.copies()


class _Joiner:
    """The object that fuses this package's functions: an `oplet.Joiner`."""

    def adopt(self, thunk: Thunk) -> Thunk | None:
        if type(thunk) is not Copies:
            return None
        arguments = []
        for target, source in thunk.pairs:
            if source.size > _MOST:
                return None
            if source.size:
                found = copy_arguments(target, source)
                if found is None:
                    return None
                arguments.append(found)
        return _Copied(thunk, np.array(arguments, np.int64).reshape(len(arguments), COPY_WORDS))

    def join(self, thunks: Sequence[Any], touched: Sequence[Any] | None = None) -> Thunk:
        known = [thunk.jobs for thunk in thunks if not isinstance(thunk, _Copied)]
        if not known:
            return partial(_in_turn, tuple(thunk.copies for thunk in thunks))
        call, failures = self._joined(thunks, known, touched), _failures(thunks)
        if not failures:
            return call
        from oplet_compiled_ops.threads.failing import with_failures  # here, as few nodes may fail

        return with_failures(call, failures)

    def _joined(self, thunks: Sequence[Any], known: Sequence[Jobs], touched: Sequence[Any] | None) -> Thunk:
        if touched is not None:
            from oplet_compiled_ops.threads.graphs import tasks  # here, as one thread needs no graph

            found = tasks([_work(thunk, of) for thunk, of in zip(thunks, touched)])
            if found is not None:
                return _graph(found, known[0], thunks)
        addresses = _addresses(thunks)
        helpers = max((jobs.helpers for jobs in known), key=len)
        jobs, memory = _gathered(addresses)
        words: Array = np.array([known[0].team, jobs.ctypes.data, len(jobs)], np.int64)
        call: Any = partial(known[0].run, words.ctypes.data)
        call.keep = jobs, memory, words, tuple(thunks)
        return partial(_with_helpers, call, helpers) if helpers else call

    def store(self, runs: Sequence[Sequence[Any]], arena: Array, model: Array, arrays: Sequence[Array]) -> StoredThunks | None:
        from oplet_compiled_ops.threads.storing import store_thunks  # here, as it is rarely needed

        return store_thunks(runs, arena, model, arrays)

    def loop(
        self, before: Thunk, condition: Sequence[Any], flag: Array, body: Sequence[Any], step: Thunk, after: Thunk
    ) -> Callable[[int, bool], int] | None:
        from oplet_compiled_ops.threads.loops import LOOP, rounds  # here, as few models have loops

        pieces: tuple[Sequence[Any], ...] = [before], condition, body, [step], [after]
        lists = [_addresses(thunks) for thunks in pieces]
        if any(int(words_at(where, HEAD_WORDS)[4]) > 1 for where in (*lists[1], *lists[2])):
            return None  # several threads share a job
        try:
            LOOP.entry()
        except MissingKernelError:
            return None
        gathered = [_gathered(addresses) for addresses in lists]
        failures = _failures([*condition, *body])
        return rounds([jobs.tolist() for jobs, _ in gathered], flag.ctypes.data, failures, (gathered, pieces, flag))


def _addresses(thunks: Sequence[Any]) -> list[int]:
    """Return the addresses of all jobs (kernel calls) of these functions, in order."""
    return [where for thunk in thunks for where in (thunk if isinstance(thunk, _Copied) else thunk.jobs).addresses]


def _failures(thunks: Sequence[Any]) -> list[Failure]:
    """Return how the nodes that these functions run may fail, each with its function's position in `thunks`."""
    return [
        failure._replace(position=position)
        for position, thunk in enumerate(thunks)
        if not isinstance(thunk, _Copied)
        for failure in thunk.jobs.failures
    ]


def _work(thunk: Any, touched: Any) -> Work:
    """Return the jobs of a function that runs a node, with the memory that they read and write, which `touched` tells of the
    node.
    """
    from oplet_compiled_ops.threads.graphs import Work

    if isinstance(thunk, _Copied):
        pairs = thunk.copies.pairs
        reads, writes = spans(source for _, source in pairs), spans(target for target, _ in pairs)
        return Work(thunk.addresses, [False] * len(thunk.addresses), [*touched.reads, *reads], [*touched.writes, *writes])
    addresses = thunk.jobs.addresses
    return Work(addresses, [int(words_at(where, HEAD_WORDS)[4]) > 1 for where in addresses], touched.reads, touched.writes)


def _graph(found: Sequence[Task], known: Jobs, thunks: Sequence[Any]) -> Thunk:
    """Return a function that runs `found` as a graph of jobs on several threads.

    Args:
        found: the tasks: jobs, and what each waits for.
        known: of one of the nodes; it has the thread pool.
        thunks: the functions that run the nodes, which are kept alive.
    """
    from oplet_compiled_ops.threads.graphs import links

    crew, run = known.crew, RUN_GRAPH.compiled()
    own = [crew.take() for _ in found]
    graph = crew.take_list(len(own))
    following = links([task.needs for task in found])
    after = np.array([own[number] for some in following for number in some], np.int64)
    keep: list[Any] = [after, tuple(thunks)]
    place, most = 0, 2 if any(len(task.needs) != 1 for task in found[1:]) else 1
    for job, task, some in zip(own, found, following):
        if task.is_shared:
            head = words_at(task.jobs[0], HEAD_WORDS)
            most = max(most, int(head[4]))
        else:
            jobs, memory = _gathered(task.jobs)
            words = np.array([jobs.ctypes.data, len(jobs)], np.int64)
            head = np.array([CHAIN.entry().address, words.ctypes.data, words.nbytes, 1, 1], np.int64)
            keep += [jobs, memory, words]
        fields = words_at(job, JOB_WORDS)
        fields[:HEAD_WORDS] = head
        fields[list(LINK_WORDS)] = graph, len(some), len(task.needs), after.ctypes.data + 8 * place
        place += len(some)
    count, helping, first = GRAPH_WORDS
    fields = words_at(graph, first + len(own))
    fields[[count, helping]] = len(own), most - 1
    fields[first:] = own
    helpers = crew.helpers[: most - 1]

    def run_graph(_keep: Any = keep) -> None:
        for helper in helpers:
            if helper.asleep:
                helper.wake()
        run(crew.address, graph)

    weakref.finalize(run_graph, _give_back, crew, own, graph).atexit = False
    return run_graph


def _give_back(crew: Crew, jobs: list[int], graph: int) -> None:
    for job in jobs:
        words_at(job, JOB_WORDS)[list(LINK_WORDS)] = 0
    crew.give_back(jobs)
    crew.give_back_list(len(jobs), graph)


def _gathered(addresses: Sequence[int]) -> tuple[Array, Array]:
    """Copy jobs and their arguments into contiguous memory in the order in which they run; return the jobs' new addresses and the
    memory.

    Jobs that several threads share are not moved, since worker threads may know their addresses.
    """
    pieces: list[Array | None] = []
    for where in addresses:
        head = words_at(where, HEAD_WORDS)
        _, words, stride, count, threads = head.tolist()
        pieces.append(None if threads > 1 else np.concatenate((head, words_at(words, stride * count // 8))))
    memory = np.concatenate([piece for piece in pieces if piece is not None] or [np.empty(0, np.int64)])
    jobs, place = np.array(addresses, np.int64), 0
    for number, piece in enumerate(pieces):
        if piece is not None:
            jobs[number] = memory.ctypes.data + 8 * place
            memory[place + 1] = jobs[number] + 8 * HEAD_WORDS
            place += len(piece)
    return jobs, memory


def _with_helpers(call: Thunk, helpers: Sequence[Any]) -> None:
    for helper in helpers:
        if helper.asleep:
            helper.wake()
    call()


def _in_turn(thunks: Sequence[Thunk]) -> None:
    for thunk in thunks:
        thunk()


JOINER = _Joiner()
