"""Fallback between providers: a node that a kernel declines, or that is beyond its registration's limits, goes to the next provider.

A *provider* of a node is a registration that serves its op and version; providers come in the order of precedence.
"""

from __future__ import annotations

from functools import partial

from oplet.errors import OpletError, UnservedNodeError
from oplet.ops.context import Declined, Node
from oplet.ops.serving.providers import Chain, Providers
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.resolving import find_providers
from oplet.texts import LONGEST, plain

__all__ = ["defer_init", "fall_back", "refusal"]


def defer_init(context: KernelContext, node: Node) -> bool:
    """Whether the node is beyond its provider's limits with the file's shapes; its `init` is then deferred until it fits."""
    if not refusal(node):
        return False
    node.providers = _providers(context, node, started=False)
    return True


def refusal(node: Node) -> str:
    """The reason why the node is beyond its registration's limits; "" if it is within them, or has no registration."""
    registration = node.registration
    return "" if registration is None or registration.limits is None else registration.limits.refusal(node)


def fall_back(context: KernelContext, node: Node, declined: Declined | str) -> None:
    """Give a node to its next provider.

    Args:
        context: the subgraph's context.
        node: the node.
        declined: what its provider raised, or the reason why it is beyond its limits.

    Raises:
        UnservedNodeError: there is none; the message names all providers and their reasons.
        OpConflictError: several packages come next.
        ResolverError: the next kernel cannot be imported.
    """
    try:
        _give(context, node, declined)
    except OpletError as error:
        raised = context.node_error(UnservedNodeError, node, error, "failed to prepare")
        if isinstance(raised, UnservedNodeError):
            raised.op = node.op_name
        raise raised from Declined(declined) if isinstance(declined, str) else declined


def _give(context: KernelContext, node: Node, declined: Declined | str) -> None:
    if node.delegate is not None:
        raise Declined(declined) if isinstance(declined, str) else declined
    if node.providers is None:
        node.providers = _providers(context, node, started=node in context.subgraph.initialized)
    # The text is that of the error, which is not made for the many nodes that another provider serves.
    if not node.providers.advance(plain(declined, LONGEST) if isinstance(declined, str) else str(declined)):
        told = "; ".join(f"{who.provenance} declines it: {why.rstrip('.')}" for who, why in node.providers.declined)
        raise Declined(f"nobody serves the node: {told}.")


def _providers(context: KernelContext, node: Node, *, started: bool) -> Providers:
    name = node.composite_name
    key = node.op, node.op_name, node.version, name, node.composite_version if name else 0
    chain = context.session.chains.get(key)
    if chain is None:
        chain = context.session.chains[key] = Chain(partial(find_providers, node, context.session.resolver))
    chain.at(0)  # an error is that of the whole chain
    return Providers(node, chain, started=started)
