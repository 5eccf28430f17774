"""Error flags of kernels that may fail at run time, e.g. for an index out of bounds.

Machine code cannot raise: the kernel writes what is wrong into words of memory, its error flag (*mark*), and computes nothing. The
code that runs jobs checks the flags afterwards, and raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from oplet_numba_ops.compiling.memory import Array
from oplet_numba_ops.overriding import Thunk

__all__ = ["Failure", "failing", "raise_first", "with_failures"]


class Failure(NamedTuple):
    """How a node fails: its error flag, and the function that raises its error.

    Attributes:
        mark: the error flag: int64 words, the first of which is not 0 if the node has failed.
        fail: raises the error that the flag's words describe.
        position: the node's position in the fused step.
    """

    mark: Array
    fail: Callable[[Array], None]
    position: int = 0


def raise_first(runner: Any, failures: Sequence[Failure]) -> None:
    """Raise the error of the first node whose flag is set, clear all flags, and store its position as the runner's `failed_at`."""
    for failure in failures:
        if failure.mark[0]:
            found = failure.mark.copy()
            for other in failures:
                other.mark[0] = 0
            runner.failed_at = failure.position
            failure.fail(found)


class _Checked:
    """A fused step of several nodes, some of which may fail."""

    def __init__(self, call: Thunk, failures: Sequence[Failure]) -> None:
        self._call, self._failures = call, failures
        self.failed_at = 0

    def __call__(self) -> None:
        self._call()
        for failure in self._failures:
            if failure.mark[0]:
                raise_first(self, self._failures)


def with_failures(call: Thunk, failures: Sequence[Failure]) -> Thunk:
    """Wrap a function to raise after it ran if one of the nodes has set its error flag."""
    return _Checked(call, failures) if failures else call


def failing(call: Any, mark_words: Array, fail: Callable[[Array], None]) -> Thunk:
    """Wrap a node's function that may fail, so that it can still be fused with its neighbours.

    Args:
        call: the function that runs its kernel, of one step.
        mark_words: its error flag.
        fail: raises the error that the flag's words describe.
    """
    failures = (Failure(mark_words, fail),)
    result: Any = _Checked(call, failures)
    result.joiner, result.jobs = call.joiner, call.jobs._replace(failures=failures)
    checked: Thunk = result
    return checked
