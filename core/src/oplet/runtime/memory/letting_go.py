"""Releasing ("letting go") large computed constants that nobody needs any more; and references that keep no interpreter alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from oplet.ops.context import Node
from oplet.ops.tensor import Allocation, Tensor
from oplet.runtime.subgraph import Subgraph

__all__ = ["let_go", "weakly"]

_COMPUTED = Allocation.COMPUTED
#: Constants of fewer bytes are not let go.
_LARGE = 1 << 16


def let_go(subgraph: Subgraph, node: Node, position: int, readers_of: Callable[[Tensor], Sequence[Node]]) -> None:
    """Release large computed constants whose last reader is this node, if every reader was folded (run ahead) or caches what it made of
    them (`Node.cached`). They are computed again if they are read again.

    Constants that kernels in C or delegates read are not released, as their addresses may be in use.

    Args:
        subgraph: the subgraph.
        node: a node that is prepared.
        position: its position in the plan.
        readers_of: returns the nodes that read a tensor.
    """
    if subgraph.delegated.kernels:
        return
    for reader in (node, *node.absorbed):
        for tensor in reader.inputs:
            if tensor is None or tensor.allocation is not _COMPUTED or tensor.nbytes < _LARGE:
                continue
            is_last = subgraph.last_use.get(tensor.index) == position
            if is_last and all(_has_read(subgraph, each, tensor) for each in readers_of(tensor)):
                tensor.let_go()


def _has_read(subgraph: Subgraph, node: Node, tensor: Tensor) -> bool:
    """Return whether a node needs a constant no more: it was folded (run ahead), or keeps what it made of the constant."""
    registration = node.registration
    if registration is None or registration.library:
        return False
    return node.index in subgraph.folded or node.has_made_of(tensor)


def weakly(method: Callable[..., None], **arguments: Any) -> Callable[[], None]:
    """Return a function that calls a bound method while its object is alive, and does not keep the object alive."""
    found = weakref.WeakMethod(method)

    def call() -> None:
        if (alive := found()) is not None:
            alive(**arguments)

    return call
