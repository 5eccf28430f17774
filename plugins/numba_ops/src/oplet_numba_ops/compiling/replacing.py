"""Nodes that numpy's kernel runs until their compiled kernels are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from oplet import Context, Node, Registration
from oplet.errors import LimitError
from oplet.kernels.arrays import Thunk
from oplet_numba_ops.compiling.background import wait
from oplet_numba_ops.compiling.kernels import CompileError, Kernel

__all__ = ["Before", "Bind", "Replaced", "Thunk", "in_turn", "replaceable"]

#: Is called when the tensors have their memory, and returns the node's thunk.
Bind = Callable[[], Thunk]


class Before(NamedTuple):
    """What numpy's kernel prepared.

    Attributes:
        prepared: its `node.prepared`.
        temporaries: its temporaries.
    """

    prepared: Any
    temporaries: list[Any]


class Replaced(NamedTuple):
    """A node whose kernel of numpy is to be replaced.

    Attributes:
        builtin: the registration of numpy's kernel.
        before: what it prepared.
        missing: the compiled kernels that are not there yet.
        bind: binds the node to them.
        first: the nodes that it absorbs, with the registrations of numpy's kernels, which run before it.
    """

    builtin: Registration
    before: Before
    missing: Sequence[Kernel]
    bind: Bind
    first: Sequence[tuple[Registration, Node]] = ()


class _ForNow:
    """A thunk of numpy's kernel: an `oplet.Improving`.

    Args:
        thunk: numpy's thunk.
        replaced: the node.
    """

    def __init__(self, thunk: Thunk, replaced: Replaced) -> None:
        self._thunk = thunk
        self._replaced: Replaced | None = replaced

    def __call__(self) -> None:
        self._thunk()

    @property
    def is_final(self) -> bool:
        replaced = self._replaced
        return replaced is None or any(kernel.error for kernel in replaced.missing)

    def better(self, wait_for_it: bool = False) -> Thunk | None:
        replaced = self._replaced
        if replaced is None:
            return None
        if wait_for_it:
            for kernel in replaced.missing:
                wait(kernel)
        if not all(kernel.has_entry for kernel in replaced.missing):
            return None
        self._replaced = None
        try:
            return replaced.bind()
        except (CompileError, LimitError, MemoryError):  # numpy goes on serving
            return None


def replaceable(context: Context, node: Node, replaced: Replaced) -> Thunk:
    """The thunk of numpy's kernel, which tells when the compiled ones are there."""
    node.prepared = replaced.before.prepared  # numpy's kernel reads it when it binds the node, and may do so when it runs
    thunks = [_bound(context, other, builtin) for builtin, other in replaced.first]
    thunks.append(_bound(context, node, replaced.builtin))
    return _ForNow(thunks[0] if len(thunks) == 1 else partial(in_turn, thunks), replaced)


def _bound(context: Context, node: Node, builtin: Registration) -> Thunk:
    if builtin.bind is not None:
        return builtin.bind(context, node)
    if builtin.invoke is None:
        raise CompileError("the numpy kernel has neither bind nor invoke")
    return partial(builtin.invoke, context, node)


def in_turn(thunks: Sequence[Thunk]) -> None:
    """Call thunks one after the other."""
    for thunk in thunks:
        thunk()
