"""Joined thunks: the jobs of neighbouring nodes, run by one call of machine code, and copies of numpy's between them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oplet.kernels.arrays import Copies
from oplet_numba_ops.compiling.memory import Array
from oplet_numba_ops.overriding import Thunk
from oplet_numba_ops.shaping.copying import COPY, COPY_WORDS, copy_arguments
from oplet_numba_ops.threads.jobs import HEAD_WORDS, JOB_WORDS

__all__ = ["JOINER", "Jobs", "mark"]

#: The most numbers of a copy that is taken from numpy, which copies large arrays as fast.
_MOST = 1 << 16


class Jobs(NamedTuple):
    """The jobs of a thunk.

    Attributes:
        run: runs jobs: the address of the team, that of the jobs' addresses, and their number.
        team: the address of the team.
        addresses: the addresses of the jobs.
        helpers: the helpers that share them.
    """

    run: Callable[..., None]
    team: int
    addresses: Sequence[int]
    helpers: Sequence[Any]


def mark(thunk: Any, jobs: Jobs) -> Thunk:
    """The thunk, to be joined with its neighbours."""
    thunk.joiner, thunk.jobs = JOINER, jobs
    result: Thunk = thunk
    return result


class _Copied:
    """Copies as jobs; called alone, they are numpy's.

    Args:
        copies: numpy's copies.
        words: the arguments of COPY for each.
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
    """The `oplet.Joiner` of compiled thunks."""

    def adopt(self, thunk: Thunk) -> Thunk | None:
        if type(thunk) is not Copies or not COPY.has_entry:
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

    def join(self, thunks: Sequence[Any]) -> Thunk:
        known = [thunk.jobs for thunk in thunks if not isinstance(thunk, _Copied)]
        if not known:
            return partial(_in_turn, tuple(thunk.copies for thunk in thunks))
        addresses = [where for thunk in thunks for where in (thunk if isinstance(thunk, _Copied) else thunk.jobs).addresses]
        helpers = max((jobs.helpers for jobs in known), key=len)
        jobs, memory = _gathered(addresses)
        call: Any = partial(known[0].run, known[0].team, jobs.ctypes.data, len(jobs))
        call.keep = jobs, memory, tuple(thunks)
        return partial(_with_helpers, call, helpers) if helpers else call


def _gathered(addresses: Sequence[int]) -> tuple[Array, Array]:
    """The addresses of copies of jobs, each followed by its arguments, so that a run reads memory from its start to its end; and their memory.

    Jobs of several threads stay where they are, since helpers may know their addresses.
    """
    pieces: list[Array | None] = []
    for where in addresses:
        head = _words(where, HEAD_WORDS)
        _, words, stride, count, threads = head.tolist()
        pieces.append(None if threads > 1 else np.concatenate((head, _words(words, stride * count // 8))))
    memory = np.concatenate([piece for piece in pieces if piece is not None] or [np.empty(0, np.int64)])
    jobs, place = np.array(addresses, np.int64), 0
    for number, piece in enumerate(pieces):
        if piece is not None:
            jobs[number] = memory.ctypes.data + 8 * place
            memory[place + 1] = jobs[number] + 8 * HEAD_WORDS
            place += len(piece)
    return jobs, memory


def _words(address: int, count: int) -> Array:
    """The words of memory at an address."""
    memory: Any = (ctypes.c_int64 * count).from_address(address)
    return np.frombuffer(memory, np.int64)


def _in_turn(thunks: Sequence[Thunk]) -> None:
    for thunk in thunks:
        thunk()


def _with_helpers(call: Thunk, helpers: Sequence[Any]) -> None:
    for helper in helpers:
        if helper.asleep:
            helper.wake()
    call()


JOINER = _Joiner()
