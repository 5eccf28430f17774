"""Inlining: the nodes of a composite's decomposition run in the composite's place, among the nodes of the subgraph that calls it.

So delegates see whole graphs. The outputs are the same bits: a composite stays a call where its tensors and those of the decomposition
differ in more than memory, or where the decomposition has a state, which a call begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from oplet.model.reachability import entry_subgraphs, named_subgraphs
from oplet.ops.context import Node
from oplet.ops.serving.registration import Registration
from oplet.ops.tensor import Allocation, Quantization, Tensor
from oplet.runtime.execution.fallback import initialize
from oplet.runtime.loading import load_nodes, load_tensors
from oplet.runtime.resolving import COMPOSITE_VERSION, find_registration, op_of
from oplet.runtime.subgraph import InlinedPiece
from oplet.schema.enums import BuiltinOperator
from oplet.schema.stablehlo_options import StableHLOCompositeOptions

if TYPE_CHECKING:
    from oplet.runtime.execution.executor import Executor
    from oplet.runtime.execution.session import Session
    from oplet.runtime.subgraph import Subgraph
    from oplet.schema import tables

__all__ = ["Decompositions", "InlinedNodes", "inline_composites"]

#: The nodes and tensors that inlining may add to a model, however small, and for each node that it has.
_ALWAYS, _EACH = 20_000, 16
#: Built-in operators whose streams of numbers begin anew in each call of their subgraph.
_STREAMS = frozenset({BuiltinOperator.RANDOM_UNIFORM, BuiltinOperator.RANDOM_STANDARD_NORMAL, BuiltinOperator.MULTINOMIAL})


class Decompositions:
    """State of inlining composites that an interpreter's subgraphs share: kernels by op, and how many nodes may still be added.

    Args:
        session: the interpreter's state.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        nodes = sum(len(subgraph.nodes) for subgraph in session.subgraphs)
        most = session.limits.max_nodes
        self._left = _ALWAYS + _EACH * nodes if most is None else min(_ALWAYS + _EACH * nodes, most - nodes)
        self._sizes: dict[int, int] = {}
        self._found: dict[tuple[object, ...], Registration | None] = {}

    def registration(self, node: Node) -> Registration | None:
        """Return the registration of the node's op that is first in the order of precedence; None if there is none."""
        key = op_of(node)
        if key not in self._found:
            self._found[key] = find_registration(node, self._session.resolver)
        return self._found[key]

    def has_room_for(self, index: int) -> bool:
        """Return whether inlining the decomposition `index`, with nested ones, would stay within the limit of added nodes."""
        return self._size(index) <= self._left

    def take(self, count: int) -> None:
        """Count nodes and tensors that inlining has added, against the limit."""
        self._left -= count

    def _size(self, index: int) -> int:
        """Return the number of nodes and tensors of a subgraph and of the decompositions of composites in it, at most 2**40."""
        waiting = [index]
        while waiting:
            at = waiting[-1]
            subgraph = self._session.subgraphs[at]
            inner = [called for node in subgraph.nodes if not node.origin for called in _decomposition(node)]
            inner = [called for called in inner if called < len(self._session.subgraphs)]
            open_ones = [called for called in inner if called not in self._sizes]
            if open_ones:
                waiting += open_ones  # calls never lead back, which was verified
                continue
            own = sum(not node.origin for node in subgraph.nodes) + subgraph.file_tensors
            self._sizes[at] = min(own + sum(self._sizes[called] for called in inner), 1 << 40)
            waiting.pop()
        return self._sizes[index]


def _decomposition(node: Node) -> Iterator[int]:
    if node.op is BuiltinOperator.STABLEHLO_COMPOSITE:
        yield from (called for called in named_subgraphs(node.raw_options) if called >= 0)


class InlinedNodes:
    """The composites of one subgraph, and the nodes of their decompositions that are made to run in their place.

    Args:
        executor: the subgraph's executor.
        decompositions: the state of inlining that all subgraphs share.
    """

    def __init__(self, executor: Executor, decompositions: Decompositions) -> None:
        self._executor = executor
        self._subgraph = executor.subgraph
        self._decompositions = decompositions
        self._plan = list(self._subgraph.execution_plan)
        self._made: dict[int, list[int] | None] = {}  # by composite; None for one that stays a call

    @property
    def composites(self) -> list[Node]:
        """The composites that are inlined now: replaced in the plan by their decompositions' nodes."""
        return [self._subgraph.nodes[index] for index in self._subgraph.delegated.inlined]

    def candidates(self, *, certain: bool) -> list[Node]:
        """Return the composites of the plan that run by their decomposition, without those known to be impossible to inline.

        Args:
            certain: whether to leave out those that a kernel might serve when their shapes change.
        """
        nodes = (self._subgraph.nodes[index] for index in self._subgraph.execution_plan)
        return [node for node in nodes if self._is_decomposed(node, certain) and self._made.get(node.index, []) is not None]

    def is_certain(self, node: Node) -> bool:
        """Return whether no kernel serves a composite as a whole, whatever its shapes, so that only its decomposition can run."""
        found = self._decompositions.registration(node)
        return found is not None and found.decomposes

    def _is_decomposed(self, node: Node, certain: bool) -> bool:
        if node.op is not BuiltinOperator.STABLEHLO_COMPOSITE or node.registration is None or not node.registration.decomposes:
            return False
        return not certain or self.is_certain(node)

    def inline(self, composites: Iterable[Node]) -> None:
        """Replace composites in the plan by their decompositions' nodes; no delegate may have claimed nodes.

        Raises:
            PrepareError: the `init` of a node's kernel fails.
        """
        for node in composites:
            nodes = self._nodes_of(node)
            if nodes is not None:
                self._subgraph.delegated.inlined[node.index] = nodes
                self._release_callee(node)
        self._update()

    def make(self, composites: Iterable[int]) -> None:
        """Create the decompositions' nodes of composites, given by index, in this order, without putting them into the plan."""
        for index in composites:
            self._nodes_of(self._subgraph.nodes[index])

    def restore(self, composites: Iterable[Node]) -> None:
        """Put composites back into the plan in place of their decompositions' nodes; no delegate may have claimed nodes."""
        for node in composites:
            self._subgraph.delegated.inlined.pop(node.index, None)
        self._update()

    def _release_callee(self, composite: Node) -> None:
        """Release the memory of the decomposition that the composite called; nodes that still call it prepare it again."""
        session, options = self._executor.session, composite.options(StableHLOCompositeOptions)
        session.memory.release(composite)
        if options.decomposition_subgraph_index not in entry_subgraphs(session.model.lazy_root):
            session.runners[options.decomposition_subgraph_index].release()

    def _update(self) -> None:
        subgraph = self._subgraph
        before, subgraph.execution_plan = subgraph.execution_plan, subgraph.delegated.with_inlined(self._plan)
        changed = set(before).symmetric_difference(subgraph.execution_plan)
        subgraph.forget_folded(subgraph.nodes[index] for index in changed)
        subgraph.invalidate()

    def _nodes_of(self, composite: Node) -> list[int] | None:
        """Return the indices of the nodes to inline for a composite, created once; None if it has to stay a call."""
        if composite.index not in self._made:
            self._made[composite.index] = self._make(composite)
        return self._made[composite.index]

    def _make(self, composite: Node) -> list[int] | None:
        session, subgraph, context = self._executor.session, self._subgraph, self._executor.context
        options, root = composite.raw_options, session.model.lazy_root
        if not isinstance(options, StableHLOCompositeOptions) or composite.version != COMPOSITE_VERSION:
            return None
        index = options.decomposition_subgraph_index
        if options.name is None or options.composite_attributes is None or not 0 <= index < len(root.subgraphs or []):
            return None
        if not self._decompositions.has_room_for(index):
            return None
        table = (root.subgraphs or [])[index]
        tensors = load_tensors(session.model, table, session.memory)
        border = _border(composite, table, tensors)
        if border is None or any(tensor.is_variable for tensor in tensors):
            return None
        first = len(subgraph.tensors)
        own: list[Tensor] = []
        for place, tensor in enumerate(tensors):
            if place in border:
                tensors[place] = border[place]
            else:
                tensor.index = first + len(own)
                own.append(tensor)
        nodes = load_nodes(session.model, table, tensors)
        written = [tensor for node in nodes for tensor in node.outputs]
        if not set(composite.outputs) <= set(written) or not set(composite.inputs).isdisjoint(written):
            return None
        for node in nodes:
            node.index += len(subgraph.nodes)
            node.origin = f"{composite.origin} > {options.name}" if composite.origin else options.name
            node.registration = self._decompositions.registration(node)
            if _keeps_state(node):
                return None
        try:
            initialize(context, nodes)
        except BaseException:
            context.free(nodes)
            raise
        subgraph.tensors.extend(own)
        subgraph.nodes.extend(nodes)
        self._decompositions.take(len(own) + len(nodes))
        indices = [node.index for node in nodes]
        subgraph.delegated.pieces.append(InlinedPiece(composite.index, index, [tensor.index for tensor in tensors], indices))
        return indices


def inline_composites(executors: Sequence[Executor], others: Sequence[Subgraph | None]) -> None:
    """Inline the composites that no kernel serves, or those that the other interpreter's subgraph has inlined, with the same indices."""
    decompositions = Decompositions(executors[0].session)
    for executor, other in zip(executors, others):
        nodes = InlinedNodes(executor, decompositions)
        if other is None:
            while found := [node for node in nodes.candidates(certain=True) if nodes._nodes_of(node)]:
                nodes.inline(found)
        elif other.delegated.pieces:
            nodes.make([piece.composite for piece in other.delegated.pieces])
            nodes.inline([executor.subgraph.nodes[index] for index in other.delegated.inlined])


def _border(composite: Node, table: tables.SubGraph, tensors: Sequence[Tensor]) -> dict[int, Tensor] | None:
    """Map the decomposition's input and output indices to the composite's tensors; None where these cannot replace its own."""
    inputs: list[int] = [] if table.inputs is None else table.inputs.tolist()
    outputs: list[int] = [] if table.outputs is None else table.outputs.tolist()
    given = [*composite.inputs, *composite.outputs]
    places = [*inputs, *outputs]
    if len(inputs) != len(composite.inputs) or len(outputs) != len(composite.outputs) or not inputs:
        return None
    if len(set(places)) < len(places) or any(tensor is None for tensor in given):
        return None
    for place, tensor in zip(places, given):
        inner = tensors[place]
        if inner.allocation is not Allocation.ARENA or tensor.is_variable or tensor.sparsity is not None:
            return None
        if not _same(inner.quantization, tensor.quantization):
            return None
    written = composite.outputs
    if len(set(written)) < len(written) or any(tensor.allocation is Allocation.CONSTANT for tensor in written):
        return None
    if not set(written).isdisjoint(composite.inputs):
        return None
    if any(tensors[place].type is not tensor.type for place, tensor in zip(outputs, written)):
        return None
    return dict(zip(places, given))


def _same(ours: Quantization | None, theirs: Quantization | None) -> bool:
    """Return whether two quantizations are equal, so that a stored value means the same with both."""
    if ours is None or theirs is None:
        return ours is theirs
    return (
        np.array_equal(ours.scales, theirs.scales)
        and np.array_equal(ours.zero_points, theirs.zero_points)
        and (ours.quantized_dimension, ours.block_size) == (theirs.quantized_dimension, theirs.block_size)
    )


def _keeps_state(node: Node) -> bool:
    """Return whether the node may keep a state from one run to the next, which a call of its subgraph resets."""
    if node.op in _STREAMS:
        return True
    return node.op is BuiltinOperator.CUSTOM and node.registration is not None and not node.registration.pure
