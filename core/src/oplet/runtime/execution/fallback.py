"""Providers of nodes: `init` of their registrations, and fallback to the next provider where a kernel declines a node, or the node is beyond
its registration's limits.

A *provider* of a node is a registration that serves its op and version; providers come in the order of precedence. Each `init` is followed by
exactly one `free` (`KernelContext.free`), whatever fails in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from oplet.errors import OpletError, PrepareError, UnservedNodeError, failures
from oplet.ops.context import Declined, Node
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.resolving import find_providers, op_of
from oplet.texts import LONGEST, plain

if TYPE_CHECKING:
    from oplet.ops.serving.providers import Providers

__all__ = ["fall_back", "initialize", "initialize_provider"]


def initialize(context: KernelContext, nodes: Iterable[Node]) -> None:
    """Call `init` of each node's registration, in order.

    Raises:
        PrepareError: a node's `init` fails; the nodes before it are initialized, and have to be freed.
    """
    for node in nodes:
        registration = node.registration
        if registration is None or registration.init is None or _defer_init(context, node):
            continue
        buffer = node.prepared if node.prepared is not None else node.raw_options or node.custom_options
        try:
            node.user_data = registration.init(context, buffer)
        except failures() as error:
            raise context.node_error(PrepareError, node, error, "failed to initialize") from error
        context.subgraph.initialized[node] = None


def initialize_provider(context: KernelContext, node: Node) -> bool:
    """Call `init` of the node's kernel unless done; False if the node is beyond that kernel's limits and goes to the next.

    Raises:
        PrepareError: there is no next kernel, or `init` fails.
        OpConflictError: several packages have equal precedence for the next kernel.
        ResolverError: the next kernel cannot be imported.
    """
    registration, providers = node.registration, node.providers
    if registration is not None and (limits := registration.limits) is not None and (reason := limits.refusal(node)):
        fall_back(context, node, reason)
        return False
    if providers is not None and not providers.started:
        if registration is not None and registration.init is not None:
            initialize(context, [node])
        providers.start()
    return True


def _defer_init(context: KernelContext, node: Node) -> bool:
    """Return whether the node, with the file's shapes, is beyond its kernel's limits; the kernel's `init` is then put off."""
    registration = node.registration
    if registration is None or registration.limits is None or not registration.limits.refusal(node):
        return False
    node.providers = _providers(context, node, started=False)
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
        if node.providers is None:
            node.providers = _providers(context, node, started=node in context.subgraph.initialized)
        # The text is that of the error, which is not made for the many nodes that another provider serves.
        if not node.providers.advance(plain(declined, LONGEST) if isinstance(declined, str) else str(declined)):
            told = "; ".join(f"{who.provenance} declines it: {why.rstrip('.')}" for who, why in node.providers.declined)
            raise Declined(f"nobody serves the node: {told}.")
    except OpletError as error:
        raised = context.node_error(UnservedNodeError, node, error, "failed to prepare")
        if isinstance(raised, UnservedNodeError):
            raised.op = node.op_name
        raise raised from Declined(declined) if isinstance(declined, str) else declined


def _providers(context: KernelContext, node: Node, *, started: bool) -> Providers:
    from oplet.ops.serving.providers import Chain, Providers  # imported late: few models need them

    key = op_of(node)
    chain = context.session.chains.get(key)
    if chain is None:
        chain = context.session.chains[key] = Chain(partial(find_providers, node, context.session.resolver))
        chain.at(0)  # an error is that of the whole chain
    return Providers(node, chain, started=started)
