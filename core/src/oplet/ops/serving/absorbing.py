"""Fusion chosen by a kernel ("absorbing"): it computes, with its own node, producer nodes whose outputs nothing else reads.

With `Registration.absorbs` a kernel knows a shape that cannot be inferred node by node. Replacing one row of a tensor in a loop is
converted to a concatenation of the rows before it, the row, and the rows after it: the size of each slice is known only at run time, and
yet the whole has the shape of the tensor. A kernel that absorbs the slices declares that shape when it is prepared, and checks it at each
run. Where it is wrong, the runtime runs the nodes unfused, from the start.

With `Registration.fuses` the fused node is only faster: padding that is never written, a clamp that is applied in place.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from oplet.ops.node import Node
from oplet.ops.tensor import Tensor

__all__ = ["Absorption", "UnforeseenShapeError", "absorb"]


class UnforeseenShapeError(Exception):
    """Raised by the function that runs a fused node, if the fused nodes give another shape than was prepared, or must be refused.

    Attributes:
        node: the fused node, which is then prepared and run unfused.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(f"{node!r} gives another shape than it was prepared for")
        self.node = node


class Absorption:
    """The fusion state of a graph: which nodes compute, with their own kernels, the producers of inputs that nothing else reads.

    Attributes:
        nodes: the nodes that absorb others now.
        apart: the indices of nodes that must stay unfused, since at run time they had other shapes than they were prepared for.
    """

    __slots__ = ("apart", "nodes")

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.apart: set[int] = set()

    @property
    def absorbed(self) -> set[Node]:
        """The nodes that are absorbed: kernels of other nodes compute them, and they do not run themselves."""
        return {other for node in self.nodes for other in node.absorbed}

    @property
    def indices(self) -> set[int]:
        """The indices of the nodes that absorb others: whose kernels compute producers of their inputs, too."""
        return {node.index for node in self.nodes}

    def has_no(self, tensor: Tensor) -> bool:
        """Return whether a tensor is never computed, as its reader absorbs (computes itself) the node that would write it."""
        return bool(self.nodes) and any(tensor in other.outputs for node in self.nodes for other in node.absorbed)

    def set_apart(self, node: Node) -> None:
        """Exclude a node from fusion from the next preparation on; no effect if no node is fused into it now."""
        self.apart.update(mine.index for mine in self.nodes if mine is node)

    def end(self, before: Container[Node] = ()) -> None:
        """Undo the fusion, so that every node runs by itself; fused nodes in `before` stay fused."""
        if self.nodes:
            for node in self.nodes:  # some may not be in the plan any more, as a delegate has claimed them
                if node not in before:
                    node.absorbed = ()
            self.nodes = [node for node in self.nodes if node.absorbed]


def absorb(
    nodes: Sequence[Node], read: Iterable[Tensor], apart: Container[int], restarts: Callable[[], bool], *, fuse: bool = True
) -> list[Node]:
    """Fuse into nodes those producers that only they read, as their kernels ask (`Registration.absorbs`, `Registration.fuses`).

    Args:
        nodes: the nodes of a graph, in the order in which they run; none absorbs another one yet.
        read: the tensors that the graph's caller reads.
        apart: the indices of nodes that stay unfused.
        restarts: whether a run may be aborted and restarted, as a kernel with `absorbs` may demand; called only if there is one.
        fuse: whether nodes may absorb others to be faster.

    Returns:
        The nodes that absorb others, whose `absorbed` is set.
    """
    wanting = [
        node
        for node in nodes
        if (kernel := node.registration) is not None
        and (kernel.absorbs is not None or (fuse and kernel.fuses is not None))
        and node.index not in apart
    ]
    if not wanting:
        return []
    makers = {node.outputs[0]: node for node in nodes if _is_plain(node)}
    readers: dict[Tensor, int] = dict.fromkeys(read, 2)
    for node in nodes:
        for tensor in node.inputs:
            if tensor is not None:
                readers[tensor] = readers.get(tensor, 0) + 1
    found: list[Node] = []
    can_restart: bool | None = None
    for node in wanting:
        own = [
            maker
            for tensor in node.inputs
            if tensor in makers and readers[tensor] == 1 and not (maker := makers[tensor]).absorbed
        ]
        kernel = node.registration
        if not own or kernel is None:
            continue
        if kernel.absorbs is not None:
            node.absorbed = tuple(kernel.absorbs(node, [maker for maker in own if _is_absorbable(maker)]))
            if node.absorbed:
                can_restart = restarts() if can_restart is None else can_restart
                node.absorbed = node.absorbed if can_restart else ()
        if fuse and kernel.fuses is not None and not node.absorbed:
            # What reads a variable would read it later, when another node may have changed it.
            node.absorbed = tuple(kernel.fuses(node, [maker for maker in own if not _reads_variables(maker)]))
        if node.absorbed:
            found.append(node)
    return found


def _is_plain(node: Node) -> bool:
    kernel = node.registration
    return kernel is not None and kernel.pure and kernel.absorbs is None and len(node.outputs) == 1


def _reads_variables(node: Node) -> bool:
    return any(tensor is not None and tensor.is_variable for tensor in node.inputs)


def _is_absorbable(node: Node) -> bool:
    return node.registration is not None and node.registration.absorbable
