"""Tiered execution ("improving"): an interim function runs a node until a better one is ready, such as machine code being
compiled.
"""

from __future__ import annotations

from typing import Any, Protocol

from oplet.ops.node import Thunk

__all__ = ["Improving", "can_improve"]


class Improving(Protocol):
    """A function that runs a node until a faster one is ready. Both use the tensors' memory as it is when the node is bound.

    Attributes:
        is_final: whether no faster one will follow.
    """

    @property
    def is_final(self) -> bool: ...

    def __call__(self) -> None:
        """Run the node."""

    def better(self, wait_for_it: bool = False) -> Thunk | None:
        """Return the faster function that is to run in this one's place from now on; None if it is not ready.

        Args:
            wait_for_it: whether to wait until the faster function is ready, or known not to come.
        """


def can_improve(thunk: Any) -> bool:
    """Return whether a function may later be replaced by a faster one."""
    return hasattr(thunk, "better") and not thunk.is_final
