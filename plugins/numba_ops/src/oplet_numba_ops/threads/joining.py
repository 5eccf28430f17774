"""Joined thunks: the jobs of neighbouring nodes, run by one call of machine code, and copies of numpy's between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oplet.kernels.arrays import Copies
from oplet_numba_ops.compiling.memory import Array
from oplet_numba_ops.overriding import Thunk
from oplet_numba_ops.shaping.copying import COPY, copy_arguments
from oplet_numba_ops.threads.jobs import JOB_WORDS

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
        own[:, 0], own[:, 3:5] = entry.address, 1
        own[:, 1] = words.ctypes.data + words.strides[0] * np.arange(len(words)) if len(words) else 0
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
        return _Copied(thunk, np.array(arguments, np.int64).reshape(len(arguments), -1 if arguments else 0))

    def join(self, thunks: Sequence[Any]) -> Thunk:
        known = [thunk.jobs for thunk in thunks if not isinstance(thunk, _Copied)]
        if not known:
            return partial(_in_turn, tuple(thunk.copies for thunk in thunks))
        addresses = [where for thunk in thunks for where in (thunk if isinstance(thunk, _Copied) else thunk.jobs).addresses]
        helpers = max((jobs.helpers for jobs in known), key=len)
        jobs = np.array(addresses, np.int64)
        call: Any = partial(known[0].run, known[0].team, jobs.ctypes.data, len(jobs))
        call.keep = jobs, tuple(thunks)
        return partial(_with_helpers, call, helpers) if helpers else call  # type: ignore[no-any-return]


def _in_turn(thunks: Sequence[Thunk]) -> None:
    for thunk in thunks:
        thunk()


def _with_helpers(call: Thunk, helpers: Sequence[Any]) -> None:
    for helper in helpers:
        if helper.asleep:
            helper.wake()
    call()


JOINER = _Joiner()
