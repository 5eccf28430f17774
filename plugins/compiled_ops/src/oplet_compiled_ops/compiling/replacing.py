"""Runs a node by numpy's kernel until its compiled kernels are ready (tiered execution)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from oplet import Context, Node
from oplet.errors import LimitError
from oplet.kernels.arrays import Thunk
from oplet_compiled_ops.compiling.background import wait
from oplet_compiled_ops.compiling.kernels import CompileError, Kernel

__all__ = ["Bind", "Replaced", "Thunk", "in_turn", "replaceable"]

#: Is called when the tensors have their memory, and returns the node's thunk.
Bind = Callable[[], Thunk]


class Replaced(NamedTuple):
    """A node that numpy's kernel runs until its compiled kernels are ready.

    Attributes:
        twins: the nodes that numpy's kernels have prepared and run, in this order: the nodes that are fused into this one, then a
            second node with the same tensors as this one.
        missing: the compiled kernels that are not ready yet.
        bind: returns the function that runs the node by the compiled kernels.
    """

    twins: Sequence[Node]
    missing: Sequence[Kernel]
    bind: Bind


class _ForNow:
    """The function that runs a node by numpy's kernel while others compile: an `oplet.Improving`, which the runtime replaces
    later.

    Args:
        thunk: the function that runs numpy's kernel.
        replaced: the node, and what is to replace that function.
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


def replaceable(context: Context, replaced: Replaced) -> Thunk:
    """Return a function that runs the node by numpy's kernel, and that gives the runtime the compiled one once its kernels are
    ready.
    """
    thunks = [_bound(context, twin) for twin in replaced.twins]
    return _ForNow(thunks[0] if len(thunks) == 1 else partial(in_turn, thunks), replaced)


def _bound(context: Context, twin: Node) -> Thunk:
    kernel = twin.registration
    if kernel is not None and kernel.bind is not None:
        return kernel.bind(context, twin)
    if kernel is None or kernel.invoke is None:
        raise CompileError("the numpy kernel has neither bind nor invoke")
    return partial(kernel.invoke, context, twin)


def in_turn(thunks: Sequence[Thunk]) -> None:
    """Call functions one after the other."""
    for thunk in thunks:
        thunk()
