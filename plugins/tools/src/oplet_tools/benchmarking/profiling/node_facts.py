"""Names, tensor shapes and work (multiply-adds, bytes) of nodes, for profiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from oplet import Work
from oplet_tools.describing.work import work_of_nodes

if TYPE_CHECKING:
    from oplet import Interpreter, PluginManager, Tensor

__all__ = ["UNKNOWN", "NodeFacts", "Place", "facts_of_nodes"]

#: Index of a subgraph, and index of a node in it.
Place = tuple[int, int]


class NodeFacts(NamedTuple):
    """Names, tensor shapes and work of a node."""

    name: str  #: Names of the tensors that it writes.
    #: Types and shapes of its inputs, such as "float32[1,224,224,3]"; omitted optional inputs are left out.
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]  #: Types and shapes of its outputs.
    work: Work  #: Multiply-adds, other operations and bytes of one run.


#: Of a node of which nothing is known.
UNKNOWN = NodeFacts("", (), (), Work(None, None, 0, 0))


def facts_of_nodes(interpreter: Interpreter, plugins: PluginManager | None = None) -> dict[Place, NodeFacts]:
    """Collect names, shapes and work of all nodes, and of the kernels that delegates put in their place, by (subgraph, node).

    Args:
        interpreter: an interpreter that has run, so that shapes that depend on values are known.
        plugins: the plugins that count the work of their ops; all installed ones by default.
    """
    work = work_of_nodes(interpreter, plugins)
    return {
        (subgraph.index, node.index): NodeFacts(
            ", ".join(tensor.name or f"tensor {tensor.index}" for tensor in node.outputs),
            _shapes(node.inputs),
            _shapes(node.outputs),
            work[subgraph.index, node.index],
        )
        for subgraph in interpreter.subgraphs
        for node in subgraph.nodes
    }


def _shapes(tensors: Iterable[Tensor | None]) -> tuple[str, ...]:
    return tuple(f"{t.type.name.lower()}[{','.join(map(str, t.shape))}]" for t in tensors if t is not None)
