"""A delegate's view of a subgraph while it claims nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from oplet.delegates.delegate import Delegate, DelegateContext, DelegateParams
from oplet.delegates.partition import GraphNode, NodeSubset, partition_graph
from oplet.errors import DelegateError
from oplet.model.control_dependencies import CONTROL_DEPENDENCIES, decode_control_dependencies
from oplet.model.model import Model
from oplet.ops.context import Node
from oplet.ops.serving.registration import Registration
from oplet.ops.tensor import Allocation, Tensor
from oplet.runtime.delegation.inlined_model import inlined_model
from oplet.runtime.execution.executor import Executor
from oplet.runtime.execution.fallback import initialize
from oplet.runtime.subgraph import Subgraph
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["SubgraphDelegateContext"]

#: Why a delegate does not claim what it is not offered.
_WITHHELD = "it is not offered to this delegate (only_nodes)"
#: The delegate whose kernels they seem to be.
_NOBODY = Delegate()
_CONTROL_FLOW = (BuiltinOperator.IF, BuiltinOperator.WHILE, BuiltinOperator.CALL_ONCE)


class SubgraphDelegateContext(DelegateContext):
    """One subgraph as a delegate sees it, valid during one call of its `prepare`.

    Args:
        delegate: the delegate.
        executor: the subgraph's executor.
        executors: the executors of all subgraphs of the model, by index.
        cluster: whether partitions may change the order of nodes (LiteRT's delegate clustering).
        fuse: whether a partition may have more than one node.

    Attributes:
        kernels: the kernel nodes that the delegate has put into the plan.
        unsupported: the delegate's reasons for not claiming nodes, by node index.
    """

    def __init__(
        self, delegate: Delegate, executor: Executor, executors: Sequence[Executor], *, cluster: bool, fuse: bool
    ) -> None:
        self.kernels: list[Node] = []
        self._only = delegate.only_nodes if executor.subgraph.index == 0 else None
        self._withheld: dict[Node, Node] = {}
        plan = executor.subgraph.execution_plan
        self.unsupported = {index: _WITHHELD for index in plan if not self.offers(executor.subgraph.nodes[index])}
        self.num_threads = executor.context.num_threads
        self.checkpoint_folder = executor.context.checkpoint_folder
        self._delegate = delegate
        self._of = executor
        self._executors = executors
        self._cluster = cluster
        self._fuse = fuse
        self._open = True
        self._others: list[SubgraphDelegateContext] = []

    def close(self) -> None:
        """Make every later use an error: the delegate may have kept the context."""
        self._open = False
        for other in self._others:
            other.close()

    @property
    def _executor(self) -> Executor:
        if not self._open:
            raise DelegateError(
                f"The function is forbidden if not calling in delegate. {self._delegate.name} uses the context of an earlier prepare."
            )
        return self._of

    @property
    def _subgraph(self) -> Subgraph:
        return self._executor.subgraph

    @property
    def model(self) -> Model:
        session = self._executor.session
        count = sum(len(subgraph.delegated.pieces) for subgraph in session.subgraphs)
        if session.inlined_model is None or session.inlined_model[0] != count:
            session.inlined_model = count, inlined_model(session.model, session.subgraphs)
        return session.inlined_model[1]

    @property
    def subgraph_index(self) -> int:
        return self._subgraph.index

    @property
    def num_subgraphs(self) -> int:
        return len(self._executor.session.subgraphs)

    @property
    def inputs(self) -> list[int]:
        return list(self._subgraph.inputs)

    @property
    def outputs(self) -> list[int]:
        return list(self._subgraph.read)

    @property
    def tensors(self) -> Sequence[Tensor]:
        return self._subgraph.tensors

    @property
    def execution_plan(self) -> list[int]:
        return list(self._subgraph.execution_plan)

    def node(self, index: int) -> Node:
        if not 0 <= index < len(self._subgraph.nodes):
            raise DelegateError(f"{self._delegate.name} asks for node {index}; the subgraph has {len(self._subgraph.nodes)}.")
        node = self._subgraph.nodes[index]
        return node if self.offers(node) else self._withheld.setdefault(node, _stand_in(node))

    def offers(self, node: Node) -> bool:
        """Return whether `Delegate.only_nodes` leaves the node to the delegate; True also for delegates' kernels."""
        return self._only is None or node.delegate is not None or node.index in self._only

    def metadata(self, name: str) -> bytes | None:
        found = self._executor.session.model.metadata(name)
        return None if found is None else found.tobytes()

    @property
    def max_seconds(self) -> float | None:
        return self._executor.session.limits.max_seconds

    def charge(self, nbytes: int) -> None:
        self._executor.session.memory.charge(nbytes)

    def report_unsupported(self, node: int, reason: str) -> None:
        index = self.node(node).index
        if self.unsupported.get(index) != _WITHHELD:
            self.unsupported[index] = reason

    def subgraph_context(self, index: int) -> DelegateContext:
        other = SubgraphDelegateContext(
            self._delegate, self._executor_at(index), self._executors, cluster=self._cluster, fuse=self._fuse
        )
        self._others.append(other)
        return other

    def mark_subgraph_as_delegation_skippable(self, index: int) -> None:
        if index == 0:
            raise DelegateError(f"{self._delegate.name} marks subgraph 0 as skippable, the one that always runs.")
        self._executor_at(index).subgraph.delegated.skippable = True

    def _executor_at(self, index: int) -> Executor:
        count = self.num_subgraphs
        if not 0 <= index < count:
            raise DelegateError(f"{self._delegate.name} asks for subgraph {index}; the model has {count} subgraphs.")
        return self._executors[index]

    def preview_delegate_partitioning(self, nodes: Collection[int]) -> list[NodeSubset]:
        subgraph = self._subgraph
        return partition_graph(
            [_as_graph_node(node) for node in subgraph.nodes],
            subgraph.execution_plan,
            subgraph.read,
            nodes,
            greedy=self._cluster,
            control_edges=self._control_edges(),
            fuse=self._fuse,
            first=_constant_nodes(subgraph) if self._fuse and self._delegate.constants_first else (),
        )

    def _control_edges(self) -> list[tuple[int, int]] | None:
        """Return the control edges in the model's metadata, as (before, after); None if there are none or they are unreadable."""
        data = self.metadata(CONTROL_DEPENDENCIES)
        edges = None if data is None else decode_control_dependencies(data)
        if edges is None or len(edges) != self.num_subgraphs:
            return None
        # An edge of a node that an earlier delegate replaced is one of that delegate's kernel.
        subgraph = self._subgraph
        wanted = _inlined_edges(subgraph, edges)
        stands = {index: index for index in subgraph.execution_plan}
        for kernel, params in subgraph.delegated.kernels.items():
            stands.update(dict.fromkeys((node.index for node in params.nodes), kernel))
        known = {before_after for before_after in wanted if set(before_after) <= stands.keys()}
        if len(known) < len(wanted):
            return list(wanted)  # the partitioner refuses them, and names the edge of a missing node
        return [(stands[before], stands[after]) for before, after in known if stands[before] != stands[after]]

    def replace_node_subsets_with_delegate_kernels(self, registration: Registration, nodes: Collection[int]) -> None:
        if not nodes:
            return
        subgraph = self._subgraph
        for index in set(nodes).intersection(subgraph.execution_plan) if self._only is not None else ():
            if not self.offers(subgraph.nodes[index]):
                raise DelegateError(f"{self._delegate.name} claims node {index}, which is not among its only_nodes.")
        plan: list[int] = []
        kernels: list[Node] = []
        for subset in self.preview_delegate_partitioning(nodes):
            if subset.claimed:
                kernels.append(self._kernel(len(subgraph.nodes) + len(kernels), registration, subset))
                plan.append(kernels[-1].index)
            else:
                plan.extend(subset.nodes)
        for kernel in kernels:
            for tensor in kernel.outputs:
                tensor.delegate = self._delegate
        subgraph.nodes.extend(kernels)
        subgraph.execution_plan = plan
        subgraph.invalidate()
        self.kernels.extend(kernels)
        initialize(self._executor.context, kernels)

    def _kernel(self, index: int, registration: Registration, subset: NodeSubset) -> Node:
        subgraph, delegate = self._subgraph, self._delegate
        inputs, outputs = ([subgraph.tensors[i] for i in indices] for indices in (subset.inputs, subset.outputs))
        for tensor in outputs:
            if tensor.delegate is not None and tensor.delegate is not delegate:
                raise DelegateError(f"{delegate.name} cannot take {tensor}: it belongs to {tensor.delegate.name}.")
        replaced = [subgraph.nodes[i] for i in subset.nodes]
        subgraph.forget_folded(replaced)
        name = registration.custom_name or delegate.name
        kernel = Node(index, BuiltinOperator.DELEGATE, name, 1, inputs, outputs, registration=registration)
        kernel.delegate = delegate
        kernel.prepared = DelegateParams(delegate, replaced, inputs, outputs)
        return kernel


def _stand_in(node: Node) -> Node:
    """Return what a delegate sees of a node that it may not claim: a kernel of another delegate, with the same tensors."""
    found = Node(node.index, BuiltinOperator.DELEGATE, node.op_name, 1, node.inputs, node.outputs, registration=node.registration)
    found.delegate = _NOBODY
    return found


def _inlined_edges(subgraph: Subgraph, edges: Sequence[Sequence[tuple[int, int]]]) -> set[tuple[int, int]]:
    """Return the control edges; an inlined composite's become edges of all its nodes, and its decomposition's are added."""
    found = set(edges[subgraph.index])
    if not subgraph.delegated.inlined:
        return found
    for piece in subgraph.delegated.pieces:
        if piece.composite in subgraph.delegated.inlined:
            there = range(len(piece.nodes))
            inner = ((a, b) for a, b in edges[piece.decomposition] if a in there and b in there)
            found |= {(piece.nodes[a], piece.nodes[b]) for a, b in inner}
    return {
        (before, after)
        for first, second in found
        for before in subgraph.delegated.with_inlined([first])
        for after in subgraph.delegated.with_inlined([second])
    }


def _constant_nodes(subgraph: Subgraph) -> list[int]:
    """Return the nodes that depend on constants only, which constant folding has run before the first invoke."""
    found: list[int] = []
    made: set[int] = set()
    for index in subgraph.execution_plan:
        node = subgraph.nodes[index]
        read = [tensor for tensor in node.inputs if tensor is not None]
        if node.registration is None or not node.registration.pure or not read:
            continue
        if all(tensor.index in made or tensor.allocation is Allocation.CONSTANT for tensor in read):
            found.append(index)
            made.update(tensor.index for tensor in node.outputs)
    return found


def _as_graph_node(node: Node) -> GraphNode:
    used = [tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None]
    return GraphNode(
        [-1 if tensor is None else tensor.index for tensor in node.inputs],
        [tensor.index for tensor in node.outputs],
        node.op in _CONTROL_FLOW or any(tensor.type is TensorType.RESOURCE for tensor in used),
    )
