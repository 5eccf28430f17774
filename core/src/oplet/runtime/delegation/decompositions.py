"""Decompositions: subgraphs that compute a composite with other ops, where no kernel computes the composite as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from oplet.model.reachability import entry_subgraphs, named_subgraphs, reached
from oplet.ops.context import Node
from oplet.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.runtime.subgraph import Subgraph

__all__ = ["idle_decompositions"]


def idle_decompositions(subgraphs: Sequence[Subgraph], model: Model) -> set[int]:
    """Return the indices of decompositions (composites' subgraphs) that do not run now, as kernels serve their composites."""
    if not any(_is_whole(node) or subgraph.delegated.inlined for subgraph in subgraphs for node in subgraph.nodes):
        return set()
    entries = entry_subgraphs(model.lazy_root)
    return _reached(subgraphs, entries, whole=False) - _reached(subgraphs, entries, whole=True)


def _reached(subgraphs: Sequence[Subgraph], entries: Iterable[int], *, whole: bool) -> set[int]:
    """Return the indices of the subgraphs that run when those at `entries` do, as nodes call them.

    Args:
        whole: whether composites that a kernel computes as a whole leave out their decomposition; False to follow all calls.
    """

    def called(index: int) -> Iterator[int]:
        for node in _present(subgraphs[index], inlined=whole):
            if not (whole and _is_whole(node)):
                yield from named_subgraphs(node.raw_options)

    return reached(entries, len(subgraphs), called)


def _present(subgraph: Subgraph, *, inlined: bool) -> Iterator[Node]:
    """Yield the nodes that the model has in a subgraph, or with `inlined` those after inlining; none are delegates' kernels."""
    plan = [node.index for node in subgraph.nodes if not node.origin and node.op is not BuiltinOperator.DELEGATE]
    yield from (subgraph.nodes[index] for index in (subgraph.delegated.with_inlined(plan) if inlined else plan))


def _is_whole(node: Node) -> bool:
    """Return whether the node is a composite that a kernel computes as a whole."""
    name = node.composite_name
    return bool(name) and node.registration is not None and node.registration.custom_name == name
