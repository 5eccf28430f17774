"""Nodes that a kernel leaves to the next one in the order of precedence."""

from __future__ import annotations

from oplet.errors import OpletError, PrepareError
from oplet.ops.context import Declined, Node
from oplet.ops.providers import Providers
from oplet.runtime.execution.initialization import initialize
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.resolving import find_providers

__all__ = ["hand_on"]


def hand_on(context: KernelContext, node: Node, declined: Declined) -> None:
    """Give a node to the next provider, initialized.

    Raises:
        PrepareError: there is none, and the message has the reasons of all that were asked; or its `init` fails.
        OpConflictError, ResolverError: several packages are next, or its kernel cannot be imported.
    """
    try:
        _give(context, node, declined)
    except OpletError as error:
        raise context.explained(PrepareError, node, error, "failed to prepare") from declined
    providers = node.providers
    if providers is not None and not providers.started:
        initialize(context, [node])
        providers.start()


def _give(context: KernelContext, node: Node, declined: Declined) -> None:
    if node.delegate is not None:
        raise declined
    if node.providers is None:
        rest = find_providers(node, context.session.resolver)
        next(rest, None)  # who has it now
        node.providers = Providers(node, rest, started=node in context.subgraph.initialized)
    if not node.providers.hand_on(str(declined)):
        reasons = node.providers.declined
        if len(reasons) == 1:
            raise declined
        told = "; ".join(f"{who.provenance} declines it: {why.rstrip('.')}" for who, why in reasons)
        raise Declined(f"nobody serves the node: {told}.")
