"""`init` of the nodes' registrations; each is followed by exactly one `free` (`KernelContext.free`), whatever fails in between."""

from __future__ import annotations

from collections.abc import Iterable

from oplet.errors import PrepareError, failures
from oplet.ops.context import Node
from oplet.runtime.execution.fallback import defer_init, fall_back, refusal
from oplet.runtime.execution.kernel_context import KernelContext

__all__ = ["initialize", "initialize_provider"]


def initialize(context: KernelContext, nodes: Iterable[Node]) -> None:
    """Call `init` of each node's registration, in order.

    Raises:
        PrepareError: one fails; those before it are initialized, and have to be freed.
    """
    for node in nodes:
        registration = node.registration
        if registration is None or registration.init is None or defer_init(context, node):
            continue
        buffer = node.prepared if node.prepared is not None else node.raw_options or node.custom_options
        try:
            node.user_data = registration.init(context, buffer)
        except failures() as error:
            raise context.node_error(PrepareError, node, error, "failed to initialize") from error
        context.subgraph.initialized[node] = None


def initialize_provider(context: KernelContext, node: Node) -> bool:
    """Initialize the node's provider if that is still to be done; False if the node is beyond its limits and went to the next provider.

    Raises:
        PrepareError: there is no next provider, or `init` fails.
        OpConflictError: several packages come next.
        ResolverError: the next kernel cannot be imported.
    """
    if reason := refusal(node):
        fall_back(context, node, reason)
        return False
    if node.providers is not None and not node.providers.started:
        initialize(context, [node])
        node.providers.start()
    return True
