"""Providers of nodes: `init` of their registrations, and fallback to the next provider where a kernel declines a node, or the node is beyond
its registration's limits.

A *provider* of a node is a registration that serves its op and version; providers come in the order of precedence. Each `init` is followed by
exactly one `free` (`KernelContext.free`), whatever fails in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from oplet.errors import OpletError, PrepareError, UnservedNodeError, failures
from oplet.ops.context import Declined, Node
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.resolving import find_providers, op_of
from oplet.texts import LONGEST, plain

if TYPE_CHECKING:
    from oplet.ops.serving.kernel import Kernel, ProviderChain

__all__ = ["Chain", "Providers", "fall_back", "initialize", "initialize_provider", "restart"]


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
        self._begin()

    def _begin(self) -> None:
        self._found: list[Kernel] = []
        self._rest = self._ask()

    def at(self, number: int) -> Kernel | None:
        """Return the kernel at a position in the order of precedence; None if there are fewer.

        Raises:
            OpConflictError: several packages have equal precedence for the next kernel.
            ResolverError: the next kernel cannot be imported.
        """
        try:
            while number >= len(self._found):
                following = next(self._rest, None)
                if following is None:
                    return None
                self._found.append(following)
        except OpletError:
            self._begin()  # so that the next caller gets the error too
            raise
        return self._found[number]


class Providers:
    """The kernels that declined a node so far, for the reasons told, and the next one in the order of precedence, which serves it now.

    All nodes of an op that come to a kernel for the same reasons share one object.

    Attributes:
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
                found = Providers(self._chain, following, (*self.declined, (self.kernel, plain(reason, LONGEST))))
                if len(self._next) < _MANY:
                    self._next[reason] = found
        return found


def initialize(context: KernelContext, nodes: Iterable[Node]) -> None:
    """Call `init` of each node's registration, in order.

    Raises:
        PrepareError: a node's `init` fails; the nodes before it are initialized, and have to be freed.
    """
    for node in nodes:
        kernel = node.registration
        if kernel is None or kernel.init is None or (kernel.limits is not None and kernel.limits.refusal(node)):
            continue  # a node that is beyond the limits with the file's shapes may be within later
        buffer = node.prepared if node.prepared is not None else node.raw_options or node.custom_options
        try:
            node.user_data = kernel.init(context, buffer)
        except failures() as error:
            raise context.node_error(PrepareError, node, error, "failed to initialize") from error
        context.subgraph.initialized.setdefault(node, {})[len(node.declined)] = kernel


def initialize_provider(context: KernelContext, node: Node) -> bool:
    """Call `init` of the node's kernel unless done; False if the node is beyond that kernel's limits and goes to the next.

    Raises:
        PrepareError: there is no next kernel, or `init` fails.
        OpConflictError: several packages have equal precedence for the next kernel.
        ResolverError: the next kernel cannot be imported.
    """
    registration = node.registration
    if registration is None:
        return True
    if (limits := registration.limits) is not None and (reason := limits.refusal(node)):
        fall_back(context, node, reason)
        return False
    if registration.init is not None and len(node.declined) not in context.subgraph.initialized.get(node, ()):
        initialize(context, (node,))
    return True


def fall_back(context: KernelContext, node: Node, declined: Declined | str) -> None:
    """Give a node to its next provider, the kernel that is next in the order of precedence.

    Args:
        context: the subgraph's context.
        node: the node.
        declined: what the present kernel raised, or the reason why the node is beyond that kernel's limits.

    Raises:
        UnservedNodeError: there is no next kernel; the message names all kernels' packages and their reasons.
        OpConflictError: several packages have equal precedence for the next kernel.
        ResolverError: the next kernel cannot be imported.
    """
    try:
        if node.delegate is not None:
            raise Declined(declined) if isinstance(declined, str) else declined
        present = node.providers or _first(context, node)
        # The text is that of the error, which is not made for the many nodes that another provider serves.
        following = present.after(reason := str(declined))
        if following is None:
            refused = [*present.declined, (present.kernel, plain(reason, LONGEST))]
            told = "; ".join(f"{who.provenance} declines it: {why.rstrip('.')}" for who, why in refused if who is not None)
            raise Declined(f"nobody serves the node: {told}.")
        node.hand_to(following)
    except OpletError as error:
        raised = context.node_error(UnservedNodeError, node, error, "failed to prepare")
        if isinstance(raised, UnservedNodeError):
            raised.op = node.op_name
        raise raised from Declined(declined) if isinstance(declined, str) else declined


def restart(context: KernelContext, node: Node) -> None:
    """Give a node back to the first kernel in the order of precedence, for a new prepare."""
    if node.providers is not None and node.providers.declined:
        node.hand_to(_first(context, node))


def _first(context: KernelContext, node: Node) -> ProviderChain:
    """Return what all nodes of an op begin with: its first kernel, which nobody declined before."""
    key = op_of(node)
    first: ProviderChain | None = context.session.chains.get(key)
    if first is None:
        chain = Chain(partial(find_providers, node, context.session.resolver))
        first = context.session.chains[key] = Providers(chain, chain.at(0))
    return first
