"""Subgraphs as data: what stands in a model, and what is known of it so far. `execution` acts on it, and nothing here acts.

Two words that all rooms use:

- A *thunk* is a function without arguments and without result that runs one node, with its arrays already looked up.
- A *segment* is a part of the execution plan whose shapes are known together: it ends behind a node that decides a shape while it
  runs, or at the plan's end. It has an arena of its own, and a thunk for each of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oplet.ops.context import Node
from oplet.ops.serving.registration import Thunk
from oplet.ops.tensor import Array, Tensor
from oplet.runtime.memory.arena_planner import Lifetime
from oplet.schema.naming import shown

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate, DelegateParams
    from oplet.runtime.describe.delegation_report import DelegationReport

__all__ = ["Request", "Segment", "Subgraph"]

#: A tensor that wants memory in the arena, and for how long.
Request = tuple[Tensor, Lifetime]


class Segment:
    """A part of the plan whose shapes are known together.

    Attributes:
        end: the position in the plan behind its last node.
        nodes: the nodes that run (folded ones do not).
        thunks: what runs them, one each.
        dynamic: the tensors whose shapes the last node decides.
        arena: the memory that its tensors share, None where they need none.
        requests: the tensors that lie in the arena.
        offsets: where they lie.
    """

    __slots__ = ("arena", "dynamic", "end", "nodes", "offsets", "requests", "thunks")

    def __init__(self, end: int, nodes: list[Node], dynamic: list[Tensor]) -> None:
        self.end = end
        self.nodes = nodes
        self.dynamic = dynamic
        self.thunks: list[Thunk] = []
        self.arena: NDArray[np.uint8] | None = None
        self.requests: Sequence[Request] = ()
        self.offsets: Sequence[int] = ()

    def holds(self, tensor: Tensor) -> bool | None:
        """Whether the tensor's memory was not given to another after it was read last; None if it is not in this arena."""
        for (mine, life), begin in zip(self.requests, self.offsets):
            if mine is tensor:
                end = begin + life.nbytes
                # One that begins where this one ends was written in its place.
                return not any(
                    other is not tensor and its.first >= life.last and offset < end and offset + its.nbytes > begin
                    for (other, its), offset in zip(self.requests, self.offsets)
                )
        return None


class Subgraph:
    """One subgraph of a model.

    Attributes:
        index: its number in the model.
        name: its name in the model.
        tensors: its tensors; what kernels add is appended.
        nodes: its nodes; delegates' kernels are appended.
        execution_plan: indices of the nodes to run, in order.
        inputs: tensor indices that the caller feeds.
        outputs: tensor indices that are the subgraph's results.
        read: tensor indices that the caller reads: the outputs, and what signatures give besides them.
        variables: the tensors whose values outlive an invoke.
        ready: whether it can be invoked: everything is prepared for the shapes of now.
        generation: a number that changes whenever it is resized or prepared: arrays seen before may be stale.
        segments: the parts of the plan that are prepared.
        last_use: the position in the plan at which each tensor is read last, by index; the plan's length for what the caller reads.
        initialized: the nodes whose `init` was called and whose `free` was not, in that order.
        folded: by node, the input arrays from which its outputs were computed once and for all.
        kernels: what each delegate's kernel replaces, by the index of its node.
        delegation_reports: what became of each delegate that was ever asked about it, the last state of each; where there are
            any, what the caller reads may lie in a delegate's buffers.
        immutable: whether a delegate that knows static shapes only has claimed nodes; a resize undoes it.
        delegation_skippable: whether a delegate has taken it into a kernel of its caller, so that none is asked about it.
    """

    def __init__(
        self,
        index: int,
        name: str,
        tensors: list[Tensor],
        nodes: list[Node],
        inputs: list[int],
        outputs: list[int],
        read: list[int],
    ) -> None:
        self.index = index
        self.name = name
        self.tensors = tensors
        self.nodes = nodes
        self.execution_plan = list(range(len(nodes)))
        self.inputs = inputs
        self.outputs = outputs
        self.read = read
        self.variables = [tensor for tensor in tensors if tensor.is_variable]
        self.ready = False
        self.generation = 0
        self.segments: list[Segment] = []
        self.last_use: dict[int, int] = {}
        self.initialized: dict[Node, None] = {}
        self.folded: dict[int, list[Array | None]] = {}
        self.kernels: dict[int, DelegateParams] = {}
        self.delegation_reports: dict[Delegate, DelegationReport] = {}
        self.immutable = False
        self.delegation_skippable = False

    @property
    def is_dynamic(self) -> bool:
        """Whether the shape of some tensor is known only while invoking. Valid once it is allocated."""
        return self.segments[0].end < len(self.execution_plan) or bool(self.segments[0].dynamic)

    @property
    def arena_bytes(self) -> int:
        """The bytes of the arenas of what is prepared so far."""
        return sum(segment.arena.nbytes for segment in self.segments if segment.arena is not None)

    def is_read(self, tensor: Tensor) -> bool:
        """Whether a node of the plan or the caller reads the tensor. Valid once it is allocated."""
        return tensor.index in self.last_use

    def still_holds(self, tensor: Tensor) -> bool:
        """Whether an intermediate tensor's memory was not given to another after it was read last."""
        if self.last_use.get(tensor.index) == len(self.execution_plan):  # an output, as nearly always
            return True
        return next((held for segment in self.segments if (held := segment.holds(tensor)) is not None), True)

    def invalidate(self) -> None:
        """Note that what was prepared does not fit any more: it takes an `allocate` before the next `invoke`."""
        self.ready = False
        self.generation += 1

    def find_last_uses(self) -> None:
        """Work out `last_use` for the plan of now; what the caller reads outlives the plan."""
        end = len(self.execution_plan)
        self.last_use = {}
        for position, index in enumerate(self.execution_plan):
            for tensor in self.nodes[index].inputs:
                if tensor is not None:
                    self.last_use[tensor.index] = position
        for index in self.read:
            self.last_use[index] = end

    def forget_folded(self, nodes: Iterable[Node]) -> None:
        """Have these nodes run again: somebody else writes, or wrote, what they had computed."""
        for node in nodes:
            self.folded.pop(node.index, None)

    def __str__(self) -> str:
        return f"subgraph {self.index}" + (f" '{shown(self.name)}'" if self.name else "")
