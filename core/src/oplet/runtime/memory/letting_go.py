"""Letting go: of large constants that were computed, once nobody needs them, and of what would keep an interpreter."""

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
    """Let the large constants go that a node reads, if they were computed, it is the last reader, and each reader was folded or has
    made of them what it needs (`Node.cached`). They are computed again where they are still to be read.

    Others may have taken an address, as kernels in C and delegates do, so that the memory has to stay.

    Args:
        subgraph: the subgraph.
        node: a node that is prepared.
        position: its position in the plan.
        readers_of: returns the nodes that read a tensor.
    """
    if subgraph.delegated.kernels:
        return
    for tensor in (tensor for reader in (node, *node.absorbed) for tensor in reader.inputs):
        if tensor is None or tensor.allocation is not _COMPUTED or tensor.nbytes < _LARGE:
            continue
        is_last = subgraph.last_use.get(tensor.index) == position
        if is_last and all(_has_read(subgraph, reader, tensor) for reader in readers_of(tensor)):
            tensor.let_go()


def _has_read(subgraph: Subgraph, node: Node, tensor: Tensor) -> bool:
    """Return whether a node needs a constant no more."""
    registration = node.registration
    if registration is None or registration.library:
        return False
    return node.index in subgraph.folded or node.has_made_of(tensor)


def weakly(method: Callable[..., None], **arguments: Any) -> Callable[[], None]:
    """Return a function that calls a method as long as its object is there, and does not keep it: nodes and tensors are freed with their interpreter."""
    found = weakref.WeakMethod(method)

    def call() -> None:
        if (alive := found()) is not None:
            alive(**arguments)

    return call
