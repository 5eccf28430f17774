"""Nodes whose result is known while preparing: they run once, and what they wrote is a constant from then on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from oplet.errors import CancelledError, DeadlineError, PrepareError, failures
from oplet.ops.context import Node
from oplet.ops.tensor import Allocation, Array

if TYPE_CHECKING:
    from oplet.runtime.subgraph import Subgraph

__all__ = ["Folding"]

_COMPUTED, _DYNAMIC = Allocation.COMPUTED, Allocation.DYNAMIC


class Folding:
    """The folded nodes of a subgraph."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph
        # By node: the input arrays from which its outputs were computed.
        self._inputs: dict[int, list[Array | None]] = {}

    def holds(self, node: Node) -> bool:
        """Whether the node ran already, on the very arrays that its inputs still are."""
        folded = self._inputs.get(node.index)
        return folded is not None and all(
            tensor is None or (tensor.is_constant and tensor.data is array) for tensor, array in zip(node.inputs, folded)
        )

    def fold(self, node: Node) -> bool:
        """Run a prepared node if its result can be known now; return whether it need not run again."""
        for tensor in node.outputs:
            if tensor.allocation is not _COMPUTED:
                break
        else:
            if node.outputs:
                return True  # set_constant in prepare
        for tensor in node.inputs:
            if tensor is not None and not tensor.is_constant:
                return False
        if node.registration is None or not node.registration.pure or not node.inputs:
            return False
        self._run(node)
        self._inputs[node.index] = [None if tensor is None else tensor.data for tensor in node.inputs]
        return True

    def waits(self, node: Node) -> bool:
        """Whether a node that was refused works on what folded nodes make of shapes: LiteRT runs those in `invoke`, and says it then.

        Many models are written for shapes that only a resize gives them.
        """
        subgraph = self._subgraph
        makers = {tensor: subgraph.nodes[i] for i in subgraph.execution_plan for tensor in subgraph.nodes[i].outputs}
        waiting = [(tensor, False) for tensor in node.inputs if tensor is not None]
        seen = set(waiting)
        while waiting:
            tensor, folded = waiting.pop()
            maker = makers.get(tensor)
            if maker is None:
                continue
            if folded and tensor.allocation is _COMPUTED and not self.holds(maker):
                return True  # a shape
            found = [(source, self.holds(maker)) for source in maker.inputs if source is not None]
            waiting.extend(dict.fromkeys(found).keys() - seen)
            seen.update(found)
        return False

    def forget(self, nodes: Iterable[Node]) -> None:
        """Have these nodes run again: somebody else writes, or wrote, what they had computed."""
        for node in nodes:
            self._inputs.pop(node.index, None)

    def clear(self) -> None:
        """Forget every node."""
        self._inputs.clear()

    def _run(self, node: Node) -> None:
        subgraph = self._subgraph
        for tensor in (*node.outputs, *node.temporaries):
            if tensor.allocation is not _DYNAMIC:
                # A variable that nobody writes yet is 0; a constant is written now, from one end to the other.
                tensor.provide(subgraph.new_array(tensor, zeroed=tensor.is_variable))
        thunk = subgraph.bind_node(node)
        try:
            thunk()
        except (CancelledError, DeadlineError):
            raise  # no node's fault
        except failures() as error:
            raise subgraph.explained(PrepareError, node, error, "failed to prepare") from error
        for tensor in node.outputs:
            if tensor.is_variable:
                continue  # this was its first value; another kernel changes it
            tensor.data.setflags(write=False)
            tensor.allocation = _COMPUTED
        node.temporaries = []
        node.kept = None, None  # it does not run again
        subgraph.session.memory.give_back(node)
