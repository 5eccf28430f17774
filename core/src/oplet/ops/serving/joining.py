"""Joining: thunks of neighbouring nodes become one, so that small nodes do not cost a call of Python each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from oplet.ops.node import Thunk

__all__ = ["Joiner", "joined"]

#: About the seconds that a joined thunk may take, since a run is stopped between thunks only.
_LONGEST = 5e-3


class Joiner(Protocol):
    """Makes one thunk of several. A thunk that can be joined has it as its attribute `joiner`, which all such thunks of a package share.

    Thunks that can be joined never raise, call nothing in Python, and always do the same with the same arrays.

    Examples:
        >>> thunk.joiner = JOINER  # doctest: +SKIP
    """

    def adopt(self, thunk: Thunk) -> Thunk | None:
        """A thunk that does the same as another package's one and can be joined; None if there is none.

        The one kind that tells what it does is `oplet.kernels.arrays.Copies`.
        """

    def join(self, thunks: Sequence[Thunk]) -> Thunk:
        """A thunk that does what these thunks do, one after the other, and keeps alive what they keep alive."""


def joined(thunks: Sequence[Thunk], seconds: Sequence[float]) -> tuple[list[Thunk], list[int]]:
    """The thunks with neighbours joined, and for each the position of the first of its nodes.

    Args:
        thunks: a thunk per node.
        seconds: about how long each takes.
    """
    joiner: Any = next((found for thunk in thunks if (found := getattr(thunk, "joiner", None)) is not None), None)
    if joiner is None:
        return list(thunks), list(range(len(thunks)))
    steps: list[Thunk] = []
    firsts: list[int] = []
    run: list[Thunk] = []
    spent = 0.0

    def end(position: int) -> None:
        if run:
            first = position - len(run)
            several = len(run) > 1
            steps.append(joiner.join(run) if several else thunks[first])
            firsts.append(first)
            run.clear()

    for position, (thunk, duration) in enumerate(zip(thunks, seconds)):
        own: Thunk | None = thunk if getattr(thunk, "joiner", None) is joiner else joiner.adopt(thunk)
        if own is None or spent + duration > _LONGEST:
            end(position)
            spent = 0.0
        if own is None:
            steps.append(thunk)
            firsts.append(position)
        else:
            run.append(own)
            spent += duration
    end(len(thunks))
    return steps, firsts
