"""The order of kernels ("providers") for a node: if one declines, the next in the order of precedence serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from oplet.errors import OpletError

if TYPE_CHECKING:
    from oplet.ops.serving.kernel import Kernel

__all__ = ["Chain", "Providers"]

#: The most reasons for which a kernel's successors are kept, as a reason may name a tensor.
_MANY = 64


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
    """The kernels that declined a node so far, for the reasons told, and the next one in the order of precedence, which serves it now.

    All nodes of an op that come to a kernel for the same reasons share one object.

    Args:
        chain: the kernels for the op.
        declined: the kernels that declined the node in the last prepare, with their reasons, in order.
        kernel: the kernel that serves it now; None for a custom op that nothing serves.
    """

    __slots__ = ("_chain", "_next", "declined", "kernel")

    def __init__(self, chain: Chain, kernel: Kernel | None, declined: tuple[tuple[Kernel, str], ...] = ()) -> None:
        self.declined = declined
        self.kernel = kernel
        self._chain = chain
        self._next: dict[str, Providers] = {}

    def after(self, reason: str) -> Providers | None:
        """Return what serves a node that the present kernel declines for this reason; None if there is no next kernel."""
        found = self._next.get(reason)
        if found is None and self.kernel is not None:
            following = self._chain.at(len(self.declined) + 1)
            if following is not None:
                found = Providers(self._chain, following, (*self.declined, (self.kernel, reason)))
                if len(self._next) < _MANY:
                    self._next[reason] = found
        return found
