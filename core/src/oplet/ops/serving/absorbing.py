"""Absorbing: a kernel computes, with its own node, nodes whose outputs nothing else reads, and so knows a shape that they alone do not tell.

A list of which a loop replaces one row is converted as the rows before it, the row, and the rows after it, one after the other: how many
rows each slice has is known only while the graph runs, and yet the whole has the shape of the list. A kernel that absorbs the slices says
so when it is prepared, and looks at each run whether it is true. Where it is not, the runtime runs the nodes one by one, from the start.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from oplet.ops.node import Node
from oplet.ops.tensor import Tensor

__all__ = ["UnforeseenShapeError", "absorb"]


class UnforeseenShapeError(Exception):
    """Raised by the thunk of a node that absorbs others, where they give it another shape than it was prepared for, or are to be refused.

    Attributes:
        node: the node.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(f"{node!r} gives another shape than it was prepared for")
        self.node = node


def absorb(nodes: Sequence[Node], read: Iterable[Tensor], apart: Container[int]) -> list[Node]:
    """Have nodes absorb those that only they read, as their kernels want it (`Registration.absorbs`).

    Args:
        nodes: the nodes of a graph, in the order in which they run; none absorbs another one yet.
        read: the tensors that the graph's caller reads.
        apart: the indices of nodes that are to absorb none.

    Returns:
        The nodes that absorb others, whose `absorbed` is set.
    """
    wanting = [
        node
        for node in nodes
        if node.registration is not None and node.registration.absorbs is not None and node.index not in apart
    ]
    if not wanting:
        return []
    makers = {node.outputs[0]: node for node in nodes if _is_absorbable(node)}
    readers: dict[Tensor, int] = dict.fromkeys(read, 2)
    for node in nodes:
        for tensor in node.inputs:
            if tensor is not None:
                readers[tensor] = readers.get(tensor, 0) + 1
    found = []
    for node in wanting:
        own = [makers[tensor] for tensor in node.inputs if tensor in makers and readers[tensor] == 1]
        absorbs = node.registration.absorbs if node.registration is not None else None
        if own and absorbs is not None:
            node.absorbed = tuple(absorbs(node, own))
            if node.absorbed:
                found.append(node)
    return found


def _is_absorbable(node: Node) -> bool:
    kernel = node.registration
    return kernel is not None and kernel.absorbable and kernel.pure and kernel.absorbs is None and len(node.outputs) == 1
