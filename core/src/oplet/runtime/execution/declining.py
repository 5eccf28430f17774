"""Declining: nodes that a kernel, or the limits of its registration, leave to the next provider in the order of precedence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from oplet.errors import OpletError, PrepareError
from oplet.ops.context import Declined, Node
from oplet.ops.serving.providers import Providers
from oplet.ops.serving.registration import Registration
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.resolving import find_providers

__all__ = ["hand_on", "put_off", "refusal"]

#: The providers that were asked so far, and where more come from, by what nodes ask for.
Chains = dict[Hashable, "tuple[list[Registration], Iterator[Registration]]"]


def put_off(context: KernelContext, node: Node) -> bool:
    """Whether the `init` of whoever has the node waits until the node is within its limits, which it is not as the file has it."""
    if not refusal(node):
        return False
    node.providers = _providers(context, node, started=False)
    return True


def refusal(node: Node) -> str:
    """Why the node is not within the limits of whoever has it, "" if it is, or has nobody."""
    registration = node.registration
    return "" if registration is None or registration.limits is None else registration.limits.refusal(node)


def hand_on(context: KernelContext, node: Node, declined: Declined) -> None:
    """Give a node to the next provider.

    Raises:
        PrepareError: there is none, and the message names all that were asked, and their reasons.
        OpConflictError, ResolverError: several packages are next, or its kernel cannot be imported.
    """
    try:
        _give(context, node, declined)
    except OpletError as error:
        raise context.explained(PrepareError, node, error, "failed to prepare") from declined


def _give(context: KernelContext, node: Node, declined: Declined) -> None:
    if node.delegate is not None:
        raise declined
    if node.providers is None:
        node.providers = _providers(context, node, started=node in context.subgraph.initialized)
    if not node.providers.advance(str(declined)):
        told = "; ".join(f"{who.provenance} declines it: {why.rstrip('.')}" for who, why in node.providers.declined)
        raise Declined(f"nobody serves the node: {told}.")


def _providers(context: KernelContext, node: Node, *, started: bool) -> Providers:
    key = node.op, node.op_name, node.version, node.composite_name, node.composite_version if node.composite_name else 0
    rest = _in_turn(context.session.chains, key, lambda: find_providers(node, context.session.resolver))
    next(rest, None)  # who has it now
    return Providers(node, rest, started=started)


def _in_turn(chains: Chains, key: Hashable, ask: Callable[[], Iterator[Registration]]) -> Iterator[Registration]:
    """The providers of an op, the best first; resolvers are asked once for all nodes of the op."""
    found, rest = chains.setdefault(key, ([], ask()))
    at = 0
    while True:
        if at == len(found):
            try:
                following = next(rest, None)
            except OpletError:
                chains.pop(key, None)  # to be told again to whoever asks again
                raise
            if following is None:
                return
            found.append(following)
        yield found[at]
        at += 1
