"""Apply delegates to subgraphs: claimed nodes out, one kernel node per partition in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oplet.delegates.delegate import Delegate, DelegateContext, DelegateParams
from oplet.delegates.partition import GraphNode, NodeSubset, partition_graph
from oplet.errors import DelegateError
from oplet.ops.context import Node
from oplet.ops.registration import Registration
from oplet.ops.tensor import Tensor
from oplet.runtime.subgraph import Subgraph
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["apply_delegate", "load_delegate"]

_CONTROL_FLOW = (BuiltinOperator.IF, BuiltinOperator.WHILE, BuiltinOperator.CALL_ONCE)


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """Make a delegate that an installed package brings.

    Args:
        library: the delegate's name, as `oplet plugins` lists it.
        options: what it is to be told.

    Raises:
        DelegateError: no package brings it, or it refuses the options.

    Example:
        >>> from oplet import Interpreter, load_delegate
        >>> Interpreter("model.tflite", experimental_delegates=[load_delegate("example")])  # doctest: +SKIP
    """
    from oplet.plugins.manager import default_manager

    return default_manager().registry().find(library).create(options)


class _Application(DelegateContext):
    """A delegate's view of one subgraph while it prepares."""

    def __init__(self, delegate: Delegate, subgraph: Subgraph, cluster: bool, fuse: bool) -> None:
        self.delegate = delegate
        self.subgraph = subgraph
        self.cluster = cluster
        self.fuse = fuse
        self.num_threads = subgraph.num_threads

    @property
    def tensors(self) -> Sequence[Tensor]:
        return self.subgraph.tensors

    @property
    def execution_plan(self) -> list[int]:
        return list(self.subgraph.execution_plan)

    def node(self, index: int) -> Node:
        if not 0 <= index < len(self.subgraph.nodes):
            raise DelegateError(f"{self.delegate.name} asks for node {index}; the subgraph has {len(self.subgraph.nodes)}.")
        return self.subgraph.nodes[index]

    def preview_delegate_partitioning(self, nodes: Collection[int]) -> list[NodeSubset]:
        subgraph = self.subgraph
        return partition_graph(
            [_as_graph_node(node) for node in subgraph.nodes],
            subgraph.execution_plan,
            subgraph.outputs,
            nodes,
            greedy=self.cluster,
            fuse=self.fuse,
        )

    def replace_node_subsets_with_delegate_kernels(self, registration: Registration, nodes: Collection[int]) -> None:
        if not nodes:
            return
        subgraph = self.subgraph
        plan: list[int] = []
        kernels: list[Node] = []
        for subset in self.preview_delegate_partitioning(nodes):
            if not subset.claimed:
                plan.extend(subset.nodes)
                continue
            tensors = subgraph.tensors
            kernel = Node(
                len(subgraph.nodes) + len(kernels),
                BuiltinOperator.DELEGATE,
                registration.custom_name or self.delegate.name,
                1,
                [tensors[i] for i in subset.inputs],
                [tensors[i] for i in subset.outputs],
                registration=registration,
            )
            kernel.prepared = DelegateParams(
                self.delegate, [subgraph.nodes[i] for i in subset.nodes], list(kernel.inputs), kernel.outputs
            )
            plan.append(kernel.index)
            kernels.append(kernel)
        subgraph.nodes.extend(kernels)
        subgraph.execution_plan = plan
        subgraph.invalidate()
        subgraph.initialize(kernels)


def apply_delegate(delegate: Delegate, subgraphs: Sequence[Subgraph], *, cluster: bool, fuse: bool) -> None:
    """Let a delegate claim nodes of every subgraph.

    Args:
        cluster: group nodes greedily, past ones that are not ready.
        fuse: allow more than one node a partition.

    Raises:
        DelegateError: it failed; every subgraph is as it was.
    """
    if not isinstance(delegate, Delegate):
        raise DelegateError(f"Null delegate. experimental_delegates has {delegate!r}, which is no oplet Delegate.")
    before = [(subgraph, list(subgraph.nodes), list(subgraph.execution_plan)) for subgraph in subgraphs]
    for subgraph in subgraphs:
        try:
            delegate.prepare(_Application(delegate, subgraph, cluster, fuse))
        except Exception as error:
            for touched, nodes, plan in before:
                touched.free(touched.nodes[len(nodes) :])
                touched.nodes[:] = nodes
                touched.execution_plan = plan
                touched.invalidate()
            raise DelegateError(
                f"Restored original execution plan after delegate application failure. {delegate.name} failed on subgraph "
                f"{subgraph.index}: {error}"
            ) from error


def _as_graph_node(node: Node) -> GraphNode:
    used = [tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None]
    return GraphNode(
        [-1 if tensor is None else tensor.index for tensor in node.inputs],
        [tensor.index for tensor in node.outputs],
        node.op in _CONTROL_FLOW or any(tensor.type is TensorType.RESOURCE for tensor in used),
    )
