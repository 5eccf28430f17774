"""`init` and `free` of the nodes' registrations: once each for every node, whatever fails in between."""

from __future__ import annotations

from collections.abc import Iterable

from oplet.errors import OpletError, PrepareError, failures
from oplet.ops.context import Declined, Node
from oplet.runtime.execution.fallback import defer_init, fall_back, refusal
from oplet.runtime.execution.kernel_context import KernelContext

__all__ = ["free", "initialize", "initialize_provider"]


def initialize(context: KernelContext, nodes: Iterable[Node]) -> None:
    """Call `init` of each node's registration; what was initialized is freed by `free`, also after a failure.

    Raises:
        PrepareError: one fails; those before it are initialized.
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
    """Whether the node is within the limits of whoever has it, who is initialized then; else the next one has it.

    Raises:
        PrepareError: there is no next one, or `init` fails.
        OpConflictError, ResolverError: several packages are next, or its kernel cannot be imported.
    """
    if reason := refusal(node):
        fall_back(context, node, Declined(reason))
        return False
    if node.providers is not None and not node.providers.started:
        initialize(context, [node])
        node.providers.start()
    return True


def free(context: KernelContext, nodes: Iterable[Node]) -> None:
    """Call `free` for those of the nodes that were initialized, once, in node order; the first failure is raised at the end."""
    initialized = context.subgraph.initialized
    failure: OpletError | None = None
    for node in sorted(nodes, key=lambda node: node.index):
        if node not in initialized:
            continue
        del initialized[node]
        called = [(node.registration, node.user_data)] if node.providers is None else node.providers.initialized()
        for registration, user_data in called:
            if registration is not None and registration.init is not None and registration.free is not None:
                try:
                    registration.free(context, user_data)
                except failures() as error:
                    failure = failure or context.node_error(PrepareError, node, error, "failed to free")
        node.user_data = None
    if failure is not None:
        raise failure
