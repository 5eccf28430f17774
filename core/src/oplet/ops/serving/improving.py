"""Improving: a thunk may run its node for the time being, until a better one is there, such as machine code that is being compiled."""

from __future__ import annotations

from typing import Any, Protocol

from oplet.ops.node import Thunk

__all__ = ["Improving", "can_improve"]


class Improving(Protocol):
    """A thunk that runs its node for the time being. Both thunks use the tensors as they are when the node is bound.

    Attributes:
        is_final: whether there will be no better one.
    """

    @property
    def is_final(self) -> bool: ...

    def __call__(self) -> None:
        """Run the node."""

    def better(self, wait_for_it: bool = False) -> Thunk | None:
        """The thunk to run in this one's place from now on; None if it is not there.

        Args:
            wait_for_it: whether to wait until it is there, or known not to come.
        """


def can_improve(thunk: Any) -> bool:
    """Whether a thunk may be replaced by a better one."""
    return hasattr(thunk, "better") and not thunk.is_final
