"""Loops (WHILE) as one call of machine code: iterations of jobs run as long as a byte that a job writes is not 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import emitted, inlined
from oplet_compiled_ops.threads.failing import Failure, raise_first
from oplet_compiled_ops.threads.jobs import run_alone

__all__ = ["LOOP", "rounds"]

# Word offsets in the state of a loop: the rounds of a call, and room for the byte that tells whether there is another round.
_ROUNDS, _FLAG, _STATE_WORDS = 0, 1, 2

load = emitted("atomics:load")
store = emitted("atomics:store")
move = emitted("copying:move")

_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)


@_inlined
def _failed(marks, count):  # type: ignore[no-untyped-def]
    found = 0
    for step in range(count):
        found |= load(load(marks + 8 * step))
    return found != 0


@kernel("void(i8, i8, i8, i8, i8)")
def LOOP(lists, flag, most, first, state):  # type: ignore[no-untyped-def]
    """Run a loop of compiled nodes: iterations, until the flag byte is 0, a node fails, or there were `most` of them.

    Args:
        lists: the address of six pairs of words (address, length) of arrays: the addresses of the jobs to run before the first
            iteration, for the condition (which writes the flag), for the body, for the step (which copies the body's outputs to
            its inputs) and after the last iteration; and those of error flags, any of which ends the loop.
        flag: the address of the byte that tells whether there is another iteration.
        most: the most iterations of this call.
        first: whether the loop begins; otherwise it goes on after an earlier call.
        state: the address of two words, the first of which receives the number of iterations.
    """
    if first != 0:
        run_alone(load(lists), load(lists + 8))
    count = 0
    while count < most:
        run_alone(load(lists + 16), load(lists + 24))
        if _failed(load(lists + 80), load(lists + 88)):
            break
        move(1, flag, state + 8)
        if load(state + 8) == 0:
            run_alone(load(lists + 64), load(lists + 72))
            break
        run_alone(load(lists + 32), load(lists + 40))
        if _failed(load(lists + 80), load(lists + 88)):
            break
        run_alone(load(lists + 48), load(lists + 56))
        count += 1
    store(state, count)


class _Rounds:
    """A loop as one call of machine code: called with the most iterations and whether it begins, it returns how many it ran.

    See `oplet.Joiner.loop`.
    """

    def __init__(self, lists: Sequence[Sequence[int]], flag: int, failures: Sequence[Failure], keep: object) -> None:
        state = np.zeros(_STATE_WORDS, np.int64)
        marks = [failure.mark.ctypes.data for failure in failures]
        memory = [np.array(some, np.int64) for some in (*lists, marks)]
        table = np.array([word for some in memory for word in (some.ctypes.data, len(some))], np.int64)
        self._keep = state, memory, table, keep
        self._call = LOOP.compiled()
        self._words = table.ctypes.data, flag
        self._state, self._where = state, state.ctypes.data
        self._failures = failures
        self.failed_at = 0

    def __call__(self, most: int, first: bool) -> int:
        self._call(*self._words, most, first, self._where)
        if self._failures:
            self.failed_at = 0
            raise_first(self, self._failures)
        return int(self._state[_ROUNDS])


def rounds(lists: Sequence[Sequence[int]], flag: int, failures: Sequence[Failure], keep: object) -> Callable[[int, bool], int]:
    """Return a function that runs iterations of a loop: it takes the most iterations and whether the loop begins, and returns
    their number.

    Args:
        lists: the addresses of jobs of one thread each: before the first iteration, condition, body, step (which copies the
            body's outputs to its inputs), after the last iteration.
        flag: the address of the byte that the condition writes: 0 ends the loop.
        failures: how nodes of condition and body may fail.
        keep: is kept alive, for the memory of the jobs.
    """
    return _Rounds(lists, flag, failures, keep)
