"""The order of kernels ("providers") for a node: if one declines, the next in the order of precedence serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from oplet.errors import OpletError
from oplet.ops.node import KernelCache, Node

if TYPE_CHECKING:
    from oplet.ops.serving.kernel import Kernel

__all__ = ["Chain", "Providers"]

#: What a kernel keeps of a node that it never served.
_NOTHING: tuple[Any, KernelCache] = None, (None, None)


class Chain:
    """The kernels for an op in the order of precedence, shared by all of its nodes; each is loaded when a node first needs it.

    Args:
        ask: returns an iterator of the kernels, which imports each one lazily.
    """

    __slots__ = ("_ask", "_found", "_rest")

    def __init__(self, ask: Callable[[], Iterator[Kernel]]) -> None:
        self._ask = ask
        self._forget()

    def _forget(self) -> None:
        self._found: list[Kernel] = []
        self._rest: Iterator[Kernel] | None = None

    def at(self, number: int) -> Kernel | None:
        """Return the kernel at a position in the order of precedence; None if there are fewer.

        Raises:
            OpConflictError: several packages have equal precedence for the next kernel.
            ResolverError: the next kernel cannot be imported.
        """
        if self._rest is None:
            self._rest = self._ask()
        try:
            while number >= len(self._found):
                following = next(self._rest, None)
                if following is None:
                    return None
                self._found.append(following)
        except OpletError:
            self._forget()  # so that the next caller gets the error too
            raise
        return self._found[number]


class Providers:
    """The kernels that may serve one node, in the order of precedence; each is loaded when it is first tried.

    The `user_data` and cache of each kernel are kept, as the node may go back and forth between them when its shapes change.

    Args:
        node: the node, served by its first kernel so far.
        chain: the kernels for its op; the first is the node's present one.
        started: whether `init` of the first kernel was called.

    Attributes:
        declined: the kernels that declined the node in the last prepare, with their reasons, in order.
    """

    __slots__ = ("_at", "_chain", "_first", "_left", "_node", "_started", "declined")

    def __init__(self, node: Node, chain: Chain, *, started: bool) -> None:
        self.declined: list[tuple[Kernel, str]] = []
        self._node = node
        self._chain = chain
        self._at = 0
        self._first = node.registration
        self._started: dict[int, Kernel | None] = {0: self._first} if started else {}
        self._left: dict[int, tuple[Any, KernelCache]] = {}  # what kernels keep of the node while another one serves it

    @property
    def started(self) -> bool:
        """Whether `init` was called of the kernel that serves the node now."""
        return self._at in self._started

    def start(self) -> None:
        """Record that `init` was called of the kernel that serves the node now."""
        self._started[self._at] = self._node.registration

    def restart(self) -> None:
        """Give the node back to the first kernel in the order of precedence, for a new prepare."""
        self.declined.clear()
        if self._at:
            self._take(0, self._first)

    def advance(self, reason: str) -> bool:
        """Give the node to the next kernel in the order of precedence; return False if there is none.

        Args:
            reason: why the present kernel declined.
        """
        if (present := self._node.registration) is not None:
            self.declined.append((present, reason))
        following = self._chain.at(self._at + 1)
        if following is None:
            return False
        self._take(self._at + 1, following)
        return True

    def initialized(self) -> list[tuple[Kernel, Any]]:
        """Return the kernels whose `init` was called, with its results."""
        self._keep()
        return [(kernel, self._left.get(at, _NOTHING)[0]) for at, kernel in self._started.items() if kernel is not None]

    def _keep(self) -> None:
        node, cache = self._node, self._node.kernel_cache
        if node.user_data is not None or cache != _NOTHING[1]:
            self._left[self._at] = node.user_data, cache
        elif self._left:
            self._left.pop(self._at, None)

    def _take(self, at: int, kernel: Kernel | None) -> None:
        self._keep()
        self._at = at
        node = self._node
        node.registration, node.prepared = kernel, None
        if self._left:
            node.user_data, node.kernel_cache = self._left.get(at, _NOTHING)
