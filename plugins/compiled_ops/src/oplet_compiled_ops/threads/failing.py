"""Error flags of kernels that may fail at run time, e.g. for an index out of bounds.

Machine code cannot raise: the kernel writes what is wrong into an array of words, its error flag (*mark*), and computes nothing.
The Python code that called it checks the flag afterwards, and raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oplet.records import Row
from oplet_compiled_ops.library.memory import Array
from oplet_compiled_ops.overriding import Thunk

__all__ = ["Failure", "failing", "raise_first", "with_failures"]


class Failure(Row):
    """Error reporting of a node's compiled kernel: its error flag, and the function that raises the error."""

    #: The error flag: int64 words, the first of which is not 0 if the node has failed; the others say more, as the kernel
    #: defines.
    mark: Array
    fail: Callable[[Array], None]  #: Raises the error that the flag's words describe.
    position: int = 0  #: The node's position among those that are fused into one call.


def raise_first(runner: Any, failures: Sequence[Failure]) -> None:
    """Raise the error of the first node whose error flag is set; before, clear all flags, and store its position as
    `runner.failed_at`.

    Return without an error if no flag is set.
    """
    for failure in failures:
        if failure.mark[0]:
            found = failure.mark.copy()
            for other in failures:
                other.mark[0] = 0
            runner.failed_at = failure.position
            failure.fail(found)


class _Checked:
    """The function that runs several fused nodes, some of which may fail; it raises the error of the first that did."""

    def __init__(self, call: Thunk, failures: Sequence[Failure]) -> None:
        self._call, self._failures = call, failures
        self.failed_at = 0

    def __call__(self) -> None:
        self._call()
        for failure in self._failures:
            if failure.mark[0]:
                raise_first(self, self._failures)


def with_failures(call: Thunk, failures: Sequence[Failure]) -> Thunk:
    """Return a function that calls `call` and then raises if one of the nodes that it runs has set its error flag."""
    return _Checked(call, failures) if failures else call


def failing(call: Any, mark_words: Array, fail: Callable[[Array], None]) -> Thunk:
    """Wrap the function that runs a node which may fail, so that it raises, and can still be fused with its neighbours.

    Args:
        call: the function that runs the node's kernel, as `team.thunk` returns it for a single short step.
        mark_words: the kernel's error flag.
        fail: raises the error that the flag's words describe.
    """
    failures = (Failure(mark_words, fail),)
    result: Any = _Checked(call, failures)
    result.joiner, result.jobs = call.joiner, call.jobs._replace(failures=failures)
    checked: Thunk = result
    return checked
