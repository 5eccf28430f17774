"""Nodes that a kernel leaves to the next one in the order of precedence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING

from oplet.errors import OpletError, PrepareError
from oplet.ops.context import Declined, Node
from oplet.ops.providers import Providers
from oplet.runtime.resolve import find_providers

if TYPE_CHECKING:
    from oplet.ops.registration import Registration
    from oplet.runtime.subgraph import Subgraph

__all__ = ["hand_on", "is_taken", "put_off"]

#: The providers that were asked so far, and where more come from, by what nodes ask for.
Chains = dict[Hashable, "tuple[list[Registration], Iterator[Registration]]"]


def is_taken(subgraph: Subgraph, node: Node) -> bool:
    """Whether the node is within the limits of whoever has it, who is initialized then; else the next one has it.

    Raises:
        PrepareError: there is no next one, or `init` fails.
        OpConflictError, ResolverError: several packages are next, or its kernel cannot be imported.
    """
    if refusal := _refusal(node):
        hand_on(subgraph, node, Declined(refusal))
        return False
    if node.providers is not None and not node.providers.started:
        subgraph.initialize([node])
        node.providers.start()
    return True


def put_off(subgraph: Subgraph, node: Node) -> bool:
    """Whether the `init` of whoever has the node waits until the node is within its limits, which it is not as the file has it."""
    if not _refusal(node):
        return False
    node.providers = _providers(subgraph, node, started=False)
    return True


def _refusal(node: Node) -> str:
    registration = node.registration
    return "" if registration is None or registration.limits is None else registration.limits.refusal(node)


def hand_on(subgraph: Subgraph, node: Node, declined: Declined) -> None:
    """Give a node to the next provider.

    Raises:
        PrepareError: there is none, and the message names all that were asked, and their reasons.
        OpConflictError, ResolverError: several packages are next, or its kernel cannot be imported.
    """
    try:
        _give(subgraph, node, declined)
    except OpletError as error:
        raise subgraph.explained(PrepareError, node, error, "failed to prepare") from declined


def _give(subgraph: Subgraph, node: Node, declined: Declined) -> None:
    if node.delegate is not None:
        raise declined
    if node.providers is None:
        node.providers = _providers(subgraph, node, started=subgraph.is_initialized(node))
    if not node.providers.hand_on(str(declined)):
        told = "; ".join(f"{who.provenance} declines it: {why.rstrip('.')}" for who, why in node.providers.declined)
        raise Declined(f"nobody serves the node: {told}.")


def _providers(subgraph: Subgraph, node: Node, *, started: bool) -> Providers:
    key = node.op, node.op_name, node.version, node.composite_name, node.composite_version if node.composite_name else 0
    rest = _in_turn(subgraph.session.chains, key, lambda: find_providers(node, subgraph.session.resolver))
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
