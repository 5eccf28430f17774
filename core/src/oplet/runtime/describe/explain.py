"""The reports of `Interpreter.explain`: which package serves each node, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from oplet.ops.context import Node
from oplet.ops.serving.provenance import Composite
from oplet.ops.serving.resolver import OpResolver
from oplet.schema.enums import BuiltinOperator
from oplet.texts import LONGEST, plain

if TYPE_CHECKING:
    from oplet.ops.serving.registration import Op
    from oplet.runtime.subgraph import Subgraph

__all__ = ["CLAIMED", "NodeReport", "explain_nodes"]

#: The reason of a node that is a delegate's kernel.
CLAIMED = "claimed by the delegate"


class NodeReport(NamedTuple):
    """The provenance of one node's kernel.

    Attributes:
        subgraph: the subgraph's index.
        node: the node's index in it.
        op: the op's name.
        version: the op's version in the model.
        distribution: the pip package that serves it; "" for the application's own registrations and where nothing serves it.
        distribution_version: that package's version.
        plugin: the plugin's name, "application" for the application's own, "" where nothing serves it.
        why: why this registration was taken; which packages declined the node in the last `prepare`, and their reasons; what the
            kernel remarks of the node (`Registration.remark`).
        composite: the composite's name, "" if the node is none.
        library: the path of the compiled library that the kernel calls, "" if it calls none.
        origin: the composite from whose decomposition the node was inlined, see `Node.origin`; "" for a node of the model itself.
    """

    subgraph: int
    node: int
    op: str
    version: int
    distribution: str
    distribution_version: str
    plugin: str
    why: str
    composite: str = ""
    library: str = ""
    origin: str = ""

    @property
    def is_claimed(self) -> bool:
        """Whether the node is a delegate's kernel, which replaces nodes of the model."""
        return self.why.startswith(CLAIMED)


def explain_nodes(
    subgraphs: Iterable[Subgraph], resolver: OpResolver, choice: str = "", *, default_delegates: bool = True
) -> list[NodeReport]:
    """Return a report for each node of the execution plans, in order.

    Args:
        subgraphs: the subgraphs.
        resolver: the resolver that the nodes were resolved with.
        choice: what "auto" chose, for the reports' `why`; "" without it.
        default_delegates: whether kernels compute what LiteRT's default delegate computes.
    """
    reports = []
    for subgraph in subgraphs:
        homes = {index: subgraph.nodes[home] for home, indices in subgraph.delegated.inlined.items() for index in indices}
        for index in subgraph.execution_plan:
            node = subgraph.nodes[index]
            registration = node.registration
            if node.op is BuiltinOperator.DELEGATE:
                why = CLAIMED
            else:
                why = _chosen(node, resolver, homes.get(index)) + _left_alone(subgraph, index)
            if registration is not None and registration.remark is not None:
                why += _after_semicolon(registration.remark(node, default_delegates))
            if choice:
                why += f"; {choice}"
            source = registration if node.delegate is None else node.delegate
            origin = None if source is None else source.provenance
            reports.append(
                NodeReport(
                    subgraph.index,
                    node.index,
                    node.op_name,
                    node.version,
                    origin.distribution if origin else "",
                    origin.version if origin else "",
                    origin.plugin if origin else "",
                    why,
                    node.composite_name,
                    "" if registration is None else registration.library,
                    node.origin,
                )
            )
    return reports


def _chosen(node: Node, resolver: OpResolver, composite: Node | None) -> str:
    """Return why the node's registration was taken, which kernels declined it before, and the composite it is inlined from."""
    registration = node.registration
    why = _precedence(node, node.op_name if node.op is BuiltinOperator.CUSTOM else node.op, node.version, resolver)
    if name := node.composite_name:
        served = registration is not None and registration.custom_name == name
        whole = Composite(name), node.composite_version
        who = _precedence(node, *whole, resolver) if served else resolver.why(*whole)
        decomposed = "" if served else f"; its decomposition runs ({why})"
        why = f"{name} version {node.composite_version}: {who}{decomposed}"
    told = [why, *_declined(node)]
    if composite is not None:
        told += [f"inlined from the composite {node.origin}", *_declined(composite)]
    return plain("; ".join(told), LONGEST)


def _precedence(node: Node, op: Op, version: int, resolver: OpResolver) -> str:
    """Return why the package that runs the node goes before others; where others declined the node, that it goes behind the first."""
    registration = node.registration
    asked = [who for who, _ in node.declined]
    first = resolver.find_op(op, version) if registration is not None and asked else None
    # Why the first one is asked first is no reason for the one that runs the node.
    if first is not None and first in asked and registration is not None and first.provenance != registration.provenance:
        return f"next after {first.provenance}"
    return resolver.why(op, version)


def _declined(node: Node) -> list[str]:
    """Return a text for each package whose kernel declined the node in the last `prepare`, with its reason."""
    return [f"{who.provenance} declined it: {reason.rstrip('.')}" for who, reason in node.declined]


def _after_semicolon(text: str) -> str:
    return plain(f"; {text}", LONGEST) if text else ""


def _left_alone(subgraph: Subgraph, node: int) -> str:
    """Return the delegates' reasons for not claiming a node."""
    reports = subgraph.delegated.reports.values()
    left = "".join(
        f"; {report.delegate} left it alone: {report.unsupported[node]}" for report in reports if node in report.unsupported
    )
    return plain(left, LONGEST)
