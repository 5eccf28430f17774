"""Subgraphs as data: the tensors, nodes and plan of the model, and what is prepared of them. `execution` acts on it.

A *segment* is a part of the execution plan whose shapes are known together: it ends after a node with an output of dynamic shape, or
at the plan's end. It has an arena of its own, and a thunk (`oplet.ops.node.Thunk`) for each of its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np

from oplet.errors import TensorError
from oplet.model.reachability import made_tensors
from oplet.ops.context import Node
from oplet.ops.ensure import index_of
from oplet.ops.node import Thunk
from oplet.ops.serving.joining import Absorption, Touched, joined
from oplet.ops.shared_values import Derived
from oplet.ops.tensor import Allocation, Tensor
from oplet.records import Row
from oplet.runtime.memory.arena_planner import Lifetime
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.texts import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet.delegates.delegate import Delegate, DelegateParams
    from oplet.ops.serving.kernel import Kernel
    from oplet.runtime.describe.delegation_report import DelegationReport

__all__ = [
    "Delegated",
    "InlinedPiece",
    "Request",
    "Segment",
    "Subgraph",
    "find_subgraph",
    "find_tensor",
    "present_signature",
    "provide_scratch",
    "stated_signature",
]

#: A request for arena memory: the tensor and its lifetime.
Request = tuple[Tensor, Lifetime]


class DeclaredShape(tuple[int, ...]):
    """A shape signature without free dimensions (-1) that the file has all the same. Most files omit such ones; a tensor's
    signature is then reported as its current shape.
    """

    __slots__ = ()


def stated_signature(stated: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape signature in a file, as a `DeclaredShape` if no dimension is free."""
    return stated if -1 in stated else DeclaredShape(stated)


def present_signature(tensor: Tensor) -> tuple[int, ...]:
    """Return a tensor's shape signature: the file's, or the current shape where the file has none."""
    signature = tensor.shape_signature
    return signature if -1 in signature or type(signature) is DeclaredShape else tensor.shape


def provide_scratch(table: tables.SubGraph, nodes: Sequence[Node], inputs: Sequence[int]) -> None:
    """Give memory to inputs of custom ops that have no value and no writer: the ops' kernels use them as scratch."""
    read = [tensor for node in nodes if node.op is BuiltinOperator.CUSTOM for tensor in node.inputs if tensor is not None]
    found = [tensor for tensor in read if tensor.allocation is Allocation.ARENA]
    given = made_tensors(table).union(inputs) if found else set()
    for tensor in found:
        if tensor.index not in given:
            tensor.is_variable = True
            tensor.allocation = Allocation.PERSISTENT


class Segment:
    """A part of the execution plan whose shapes are known together.

    Attributes:
        end: the position in the plan after its last node.
        nodes: the nodes that run; folded ones do not.
        thunks: for each of these nodes the function that runs it.
        steps: the thunks, neighbours fused where they can be (`oplet.ops.serving.joining`), and the position of the first node of
            each; None until the segment runs for the second time.
        seconds: the durations of the thunks in the first run; None before.
        is_one_step: whether its nodes are one compiled step, or it has no nodes.
        dynamic: the last node's outputs of dynamic shape.
        arena: the memory that its tensors share, as bytes; None if they need none.
        requests: the tensors in the arena, with their lifetimes.
        offsets: their offsets in the arena, in bytes.
    """

    __slots__ = (
        "arena",
        "dynamic",
        "end",
        "is_one_step",
        "nodes",
        "offsets",
        "requests",
        "seconds",
        "steps",
        "thunks",
    )

    def __init__(self, end: int, nodes: list[Node], dynamic: list[Tensor]) -> None:
        self.end = end
        self.nodes = nodes
        self.dynamic = dynamic
        self.thunks: list[Thunk] = []
        self.steps: tuple[list[Thunk], list[int]] | None = None
        self.seconds: list[float] | None = None
        self.is_one_step = False
        self.arena: NDArray[np.uint8] | None = None
        self.requests: Sequence[Request] = ()
        self.offsets: Sequence[int] = ()

    def join(self, seconds: Sequence[float], num_threads: int) -> tuple[list[Thunk], list[int]]:
        """Fuse neighbouring nodes' functions, given their durations and the kernels' number of threads; set `steps` and return them."""
        self.steps = joined(self.thunks, seconds, self._touched if num_threads > 1 else None)
        self.is_one_step = len(self.steps[0]) <= 1 and (len(self.thunks) != 1 or hasattr(self.thunks[0], "joiner"))
        return self.steps

    def unjoin(self) -> None:
        """Drop the fused `steps`, as a node's function has changed; the next run fuses again."""
        self.steps, self.is_one_step = None, False

    def _touched(self, position: int) -> Touched:
        """Return the address ranges that the thunk of the node at a position may read and write."""
        node = self.nodes[position]
        inputs = [tensor for reader in (node, *node.absorbed) for tensor in reader.inputs if tensor is not None]
        written = [*node.outputs, *node.temporaries, *(tensor for tensor in inputs if tensor.is_variable)]
        return Touched(_spans(inputs), _spans(written))

    def holds(self, tensor: Tensor) -> bool | None:
        """Return whether the tensor's memory in the arena was not reused after its last use; None if the tensor is not in this arena."""
        for (mine, life), begin in zip(self.requests, self.offsets):
            if mine is tensor:
                end = begin + life.nbytes
                # A tensor whose life begins at this one's last use was written in place.
                return not any(
                    other is not tensor and its.first >= life.last and offset < end and offset + its.nbytes > begin
                    for (other, its), offset in zip(self.requests, self.offsets)
                )
        return None


def _spans(tensors: Sequence[Tensor]) -> list[tuple[int, int]]:
    """Return the address ranges of tensors that have memory, without constants, which nobody writes."""
    from oplet.kernels.arrays import spans  # imported late: only interpreters of several threads ask

    return spans(tensor.data for tensor in tensors if tensor.has_data and not tensor.is_constant)


class Stored(Protocol):
    """Protocol: a plan (prepared model) that another process stored on disk; avoids a circular import."""

    def undo(self, subgraph: Subgraph) -> None:
        """Remove the plan's shapes, types and memory from the subgraph's tensors, which is no longer prepared then."""

    @property
    def nbytes(self) -> int:
        """The bytes that its thunks use besides the arena."""

    def attach(self, compute: Callable[[], None]) -> None:
        """Set what prepares the subgraph's own nodes, in the same memory, when a computed constant is read."""


class InlinedPiece(Row):
    """The nodes and tensors made of a composite's decomposition in the calling subgraph, to run in the composite's place.

    Attributes:
        composite: the index of the composite in whose place they may run.
        decomposition: the index of the decomposition, the subgraph that they are from.
        tensors: for each tensor of the decomposition its index in the calling subgraph; inputs and outputs are the composite's.
        nodes: for each node of the decomposition its index in the calling subgraph.
    """

    composite: int
    decomposition: int
    tensors: list[int]
    nodes: list[int]


class Delegated:
    """The changes that delegates have made to a subgraph, including inlining for them; written by `delegation`.

    Attributes:
        kernels: by index of a delegate's kernel node, the partition that it replaces.
        inlined: by index of a composite that is inlined, the indices of the nodes that run in its place, in order.
        pieces: the nodes and tensors that were made of decompositions so far, inlined now or not.
        reports: by delegate, the outcome of its last application; not empty means that outputs may be in a delegate's buffers.
        immutable: whether a delegate of static shapes has claimed nodes; a resize undoes the delegates then.
        awaiting: nodes without a kernel, for which the next `allocate` applies again the delegate that ran them before a resize.
        skippable: whether a delegate's kernel of the caller has taken the subgraph over, so that no delegate is applied to it.
    """

    __slots__ = ("awaiting", "immutable", "inlined", "kernels", "pieces", "reports", "skippable")

    def __init__(self) -> None:
        self.kernels: dict[int, DelegateParams] = {}
        self.inlined: dict[int, list[int]] = {}
        self.pieces: list[InlinedPiece] = []
        self.reports: dict[Delegate, DelegationReport] = {}
        self.immutable = False
        self.awaiting: frozenset[Node] = frozenset()
        self.skippable = False

    def with_inlined(self, plan: Iterable[int]) -> list[int]:
        """Return a plan (indices of nodes) in which inlined composites are replaced by the nodes of their decompositions."""
        found: list[int] = []
        waiting = [iter(plan)]
        while waiting:
            index = next(waiting[-1], None)
            if index is None:
                waiting.pop()
            elif index in self.inlined:
                waiting.append(iter(self.inlined[index]))
            else:
                found.append(index)
        return found


class Subgraph:
    """One subgraph of a model.

    Attributes:
        index: its number in the model.
        name: its name in the model.
        tensors: its tensors; those of inlined composites, and those that kernels add, are appended.
        nodes: its nodes; those of inlined composites, and then delegates' kernels, are appended.
        execution_plan: indices of the nodes to run, in order.
        inputs: tensor indices of the subgraph's inputs.
        outputs: tensor indices of the subgraph's outputs.
        read: tensor indices that the caller reads: the outputs, and further tensors that are outputs of a signature.
        file_tensors: the number of tensors that the model file has for it.
        variables: the tensors whose values outlive an invoke.
        ready: whether it can be invoked: everything is prepared for the current input shapes.
        generation: a number that changes with every resize and every preparation, which may replace arrays.
        segments: the parts of the plan that are prepared so far.
        last_use: by tensor index, the position in the plan of the last node that reads it; the plan's length if the caller reads it.
        read_again: the indices of the tensors that are read more than once.
        initialized: the nodes with kernels whose `init` was called and whose `free` was not: those, by how many declined the node before.
        folded: by index of a folded node, its outputs' arrays, and the input arrays that it read.
        delegated: what delegates have changed, and inlining for them.
        absorption: the nodes that absorb others (compute them too).
        stored: the plan from disk that it runs (`runtime.memory.stored_plan`), in place of its nodes' thunks; None if there is none.
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
        self.file_tensors = len(tensors)
        self.variables = [tensor for tensor in tensors if tensor.is_variable]
        self.ready = False
        self.generation = 0
        self.segments: list[Segment] = []
        self.last_use: dict[int, int] = {}
        self.read_again: set[int] = set()
        self.initialized: dict[Node, dict[int, Kernel]] = {}
        self.folded: dict[int, Derived] = {}
        self.delegated = Delegated()
        self.absorption = Absorption()
        self.stored: Stored | None = None
        self._orders: tuple[list[int], list[int]] | None = None  # the plan before nodes were moved, and after

    @property
    def is_dynamic(self) -> bool:
        """Whether a tensor has a dynamic shape, which is known only while invoking. Valid after `allocate`."""
        return self.segments[0].end < len(self.execution_plan) or bool(self.segments[0].dynamic)

    @property
    def arena_bytes(self) -> int:
        """The bytes of all arenas, the memory blocks that tensors share, one for each prepared part of the plan."""
        return sum(segment.arena.nbytes for segment in self.segments if segment.arena is not None)

    @property
    def is_joined(self) -> bool:
        """Whether all nodes are fused into one step: the next `invoke` calls nothing but compiled kernels and copies."""
        segments = self.segments
        return len(segments) == 1 and segments[0].is_one_step and segments[0].end == len(self.execution_plan)

    @property
    def joined_segment(self) -> Segment | None:
        """The only segment (part of the plan), if its thunks are fused into one step or are no more than one; None otherwise."""
        segments = self.segments
        if len(segments) != 1 or segments[0].end < len(self.execution_plan) or segments[0].dynamic:
            return None
        steps = segments[0].steps
        return segments[0] if steps is not None and len(steps[0]) <= 1 else None

    def is_read(self, tensor: Tensor) -> bool:
        """Return whether the caller or a node of the execution plan reads the tensor. Valid after `allocate`."""
        return tensor.index in self.last_use

    def still_holds(self, tensor: Tensor) -> bool:
        """Return whether a tensor still has its value after `invoke`: no other was written into its memory after its last use."""
        if self.last_use.get(tensor.index) == len(self.execution_plan):  # an output, the usual case
            return True
        return next((held for segment in self.segments if (held := segment.holds(tensor)) is not None), True)

    def invalidate(self) -> None:
        """Mark the preparation as outdated: `allocate` is needed before the next `invoke`."""
        self.ready = False
        self.generation += 1
        self.absorption.end()
        self.restore_order()

    def reorder(self, plan: list[int]) -> None:
        """Run the nodes in the order of `plan`, with fused nodes moved to those that compute them, until `restore_order`."""
        self._orders = self.execution_plan, plan
        self.execution_plan = plan

    def restore_order(self) -> None:
        """Run the nodes in the model's order again: nothing is fused any more, and the first refused node in that order is reported."""
        if self._orders is not None and self._orders[1] is self.execution_plan:
            self.execution_plan = self._orders[0]
        self._orders = None

    def set_apart(self, node: Node | None) -> None:
        """Exclude a node from fusion, and have the subgraph prepared again."""
        self.absorption.set_apart(node)
        self.invalidate()

    def find_last_uses(self) -> None:
        """Compute `last_use`, the position in the execution plan of the last node that reads each tensor, and `read_again`."""
        end, nodes = len(self.execution_plan), self.nodes
        self.last_use, self.read_again = last_use, read_again = {}, set()
        for position, index in enumerate(self.execution_plan):
            node = nodes[index]
            for tensor in chain(node.inputs, *[other.inputs for other in node.absorbed]) if node.absorbed else node.inputs:
                if tensor is not None:
                    number = tensor.index
                    if number in last_use:
                        read_again.add(number)
                    last_use[number] = position
        for index in self.read:
            last_use[index] = end

    def reset_variables(self) -> None:
        """Set variables, and persistent temporaries with `is_variable`, to 0 (int8 ones to their zero point, as in LiteRT)."""
        kept = (tensor for node in self.nodes for tensor in node.temporaries)
        for tensor in chain(self.variables, kept):
            if tensor.is_variable and tensor.has_data and not tensor.is_constant:
                tensor.data.fill(tensor.zero_point if tensor.type is TensorType.INT8 else 0)

    def forget_folded(self, nodes: Iterable[Node]) -> None:
        """Let folded nodes (run ahead on constants) run again, as a delegate's kernel writes, or wrote, their outputs."""
        for node in nodes:
            self.folded.pop(node.index, None)

    def __str__(self) -> str:
        return f"subgraph {self.index}" + (f" '{shown(self.name)}'" if self.name else "")


def find_subgraph(subgraphs: Sequence[Subgraph], index: int) -> Subgraph:
    """Return the subgraph of an index.

    Raises:
        TensorError: there is no such subgraph; the message is LiteRT's.
    """
    if not 0 <= index < len(subgraphs):
        raise TensorError(f"Invalid subgraph index {index} exceeds max subgraph index {len(subgraphs)}")
    return subgraphs[index]


def find_tensor(subgraphs: Sequence[Subgraph], index: int, subgraph_index: int) -> Tensor:
    """Return the tensor of an index in a subgraph.

    Raises:
        TensorError: there is no such tensor; the message is LiteRT's.
        TypeError: the index is no integer.
    """
    tensors, index = find_subgraph(subgraphs, subgraph_index).tensors, index_of(index)
    if not 0 <= index < len(tensors):
        raise TensorError(f"Invalid tensor index {index} exceeds max tensor index {len(tensors)}")
    return tensors[index]
