"""Partitioning of a model by delegates, without running it: partitions, nodes that stay and why, tensors that cross
boundaries.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oplet import Interpreter, Node, Tensor
from oplet.errors import OpletError
from oplet.toolkit import bytes_needed, idle_decompositions

if TYPE_CHECKING:
    from oplet import Delegate, PluginManager
    from oplet.toolkit import Subgraph

__all__ = [
    "GraphTensor",
    "NodeAssignment",
    "Partition",
    "Partitioning",
    "SubgraphPartitioning",
    "Traffic",
    "partition_interpreter",
    "partition_model",
]


@dataclass(frozen=True)
class GraphTensor:
    """A tensor of a subgraph."""

    index: int
    name: str
    type: str
    shape: tuple[int, ...]  #: The shape, as far as it is known before the model runs.
    bytes: int | None  #: The size of its values in bytes; None if unknown: strings, resources, shapes that depend on data.
    constant: bool  #: Whether its value is known before the model runs.


@dataclass(frozen=True)
class Traffic:
    """Tensors that cross a partition's boundary in one direction."""

    tensors: list[int]  #: Indices of the tensors.
    bytes: int  #: The sum of their known sizes in bytes.
    unknown: int  #: The number of tensors of unknown size, which `bytes` leaves out.


@dataclass(frozen=True)
class Partition:
    """A partition: the nodes that one delegate kernel replaces."""

    index: int  #: Its number among the model's partitions.
    delegate: str
    kernel: int  #: The index of the delegate kernel's node.
    nodes: list[int]  #: Indices of the nodes, in the order in which to run them.
    inputs: Traffic  #: Tensors from outside that its nodes read, without constants.
    outputs: Traffic  #: Tensors of its nodes that other nodes, or the caller, read.
    constants: Traffic  #: Constants that its nodes read.
    remark: str = ""  #: The delegate's remark on how the partition runs, such as the device; "" without one.


@dataclass(frozen=True)
class NodeAssignment:
    """A node of the model, and the partition that it is assigned to."""

    index: int
    op: str  #: The operator's name.
    version: int  #: The version of the op in the model.
    inputs: list[int]  #: Indices of its inputs, -1 for one that is left out.
    outputs: list[int]  #: Indices of its outputs.
    partition: int | None  #: The number of its partition; None if no delegate claims it.
    why: dict[str, str]  #: The reason why each delegate does not claim it, by the delegate's name; "" if the delegate gives none.


@dataclass(frozen=True)
class SubgraphPartitioning:
    """The partitioning of one subgraph."""

    index: int
    name: str
    inputs: list[int]  #: Indices of its input tensors.
    outputs: list[int]  #: Indices of its output tensors.
    tensors: dict[int, GraphTensor]  #: The tensors that nodes or callers use, by index.
    nodes: list[NodeAssignment]  #: The model's nodes, in the order in which they run without delegates.
    plan: list[int]  #: The execution plan with delegates: indices of unclaimed nodes and of delegate kernels.
    partitions: list[Partition]  #: The partitions, in the order in which they run.
    #: For each delegate that failed on this subgraph and is not applied to it, the error, by the delegate's name.
    errors: dict[str, str]
    skipped: str  #: Why delegates are not applied to this subgraph; "" if they are.


@dataclass(frozen=True)
class Partitioning:
    """The partitioning of a model."""

    file: str  #: The model's name.
    #: The delegates' names, in the order in which they are applied; "NAME (2)" for a second one of that name.
    delegates: list[str]
    #: The error of a delegate that failed or does not support the model; "" without one. Later delegates are not applied.
    error: str
    subgraphs: list[SubgraphPartitioning] = field(default_factory=list)  #: All subgraphs.

    @property
    def partitions(self) -> list[Partition]:
        """The partitions of all subgraphs."""
        return [partition for subgraph in self.subgraphs for partition in subgraph.partitions]

    @property
    def nodes(self) -> int:
        """The number of nodes in the model."""
        return sum(len(subgraph.nodes) for subgraph in self.subgraphs)

    @property
    def claimed(self) -> int:
        """The number of nodes that delegates claim, in all subgraphs."""
        return sum(len(partition.nodes) for partition in self.partitions)

    @property
    def totals(self) -> tuple[Traffic, Traffic, Traffic]:
        """The tensors and bytes that all partitions together read as inputs, write as outputs, and read as constants."""
        cuts = self.partitions
        return _sum([c.inputs for c in cuts]), _sum([c.outputs for c in cuts]), _sum([c.constants for c in cuts])


def partition_model(
    model: str | os.PathLike[str], delegates: Sequence[Delegate], plugins: PluginManager | None = None
) -> Partitioning:
    """Let delegates claim the nodes of a model, without running it.

    Args:
        model: the .tflite file.
        delegates: the delegates, in the order in which they claim nodes.
        plugins: the plugins that provide kernels for the other nodes; all installed ones by default.

    Raises:
        ModelError: the file cannot be read or is not a valid model, or an operator has no kernel.
    """
    interpreter = Interpreter(model, plugins=plugins)
    try:
        return partition_interpreter(interpreter, delegates)
    finally:
        interpreter.close()


def partition_interpreter(interpreter: Interpreter, delegates: Sequence[Delegate]) -> Partitioning:
    """Let delegates claim the nodes of an open model; the interpreter stays open, with the delegates applied.

    Args:
        interpreter: an interpreter without delegates.
        delegates: the delegates, in the order in which they claim nodes.
    """
    before = [(list(subgraph.nodes), list(subgraph.execution_plan)) for subgraph in interpreter.subgraphs]
    inputs = [[list(node.inputs) for node in nodes] for nodes, _ in before]
    error = ""
    try:
        for delegate in delegates:
            interpreter.modify_graph_with_delegate(delegate)
        if all(s.nodes[index].registration is not None for s in interpreter.subgraphs for index in s.execution_plan):
            interpreter.allocate_tensors()  # delegate kernels may still fail when they get the shapes
    except OpletError as failure:
        error = str(failure)
    names = _names(delegates)
    idle = idle_decompositions(interpreter.subgraphs, interpreter.model)
    result = Partitioning(interpreter.model.name, list(names.values()), error)
    for subgraph, (nodes, plan), reads in zip(interpreter.subgraphs, before, inputs):
        result.subgraphs.append(
            _SubgraphDescriber(subgraph, nodes, plan, reads, names, len(result.partitions), subgraph.index in idle).described(
                not error
            )
        )
    return result


def _names(delegates: Iterable[Delegate]) -> dict[Delegate, str]:
    names: dict[Delegate, str] = {}
    counts: Counter[str] = Counter()
    for delegate in delegates:
        counts[delegate.name] += 1
        count = counts[delegate.name]
        names[delegate] = delegate.name if count == 1 else f"{delegate.name} ({count})"
    return names


class _SubgraphDescriber:
    """Makes the `SubgraphPartitioning` of one subgraph."""

    def __init__(
        self,
        subgraph: Subgraph,
        nodes: list[Node],
        plan: list[int],
        inputs: list[list[Tensor]],
        names: dict[Delegate, str],
        first: int,
        idle: bool,
    ) -> None:
        self._names = names
        self._idle = idle
        self._subgraph = subgraph
        self._nodes = subgraph.nodes
        self._inputs = [*inputs, *(list(node.inputs) for node in subgraph.nodes[len(nodes) :])]
        # What was inlined from composites stands where these were.
        self._plan = subgraph.delegated.with_inlined(plan)
        kernels = [subgraph.nodes[index] for index in subgraph.execution_plan if subgraph.nodes[index].delegate is not None]
        self._partitions = [self._partition(first + place, kernel) for place, kernel in enumerate(kernels)]
        self._reports = subgraph.delegated.reports
        self._homes = {node: partition.index for partition in self._partitions for node in partition.nodes}

    def described(self, all_asked: bool) -> SubgraphPartitioning:
        subgraph = self._subgraph
        used = {*subgraph.inputs, *subgraph.outputs}
        for inputs, node in ((self._inputs[index], self._nodes[index]) for index in self._plan):
            used.update(tensor.index for tensor in (*inputs, *node.outputs) if tensor is not None)
        return SubgraphPartitioning(
            subgraph.index,
            subgraph.name,
            list(subgraph.inputs),
            list(subgraph.outputs),
            {index: _tensor(subgraph.tensors[index]) for index in sorted(used)},
            [self._place(index) for index in self._plan],
            list(subgraph.execution_plan),
            self._partitions,
            {self._names[delegate]: report.error for delegate, report in self._reports.items() if report.error},
            self._skipped(all_asked),
        )

    def _skipped(self, all_asked: bool) -> str:
        if self._subgraph.delegated.skippable:
            return "a delegate took it into a kernel of its caller"
        if not all_asked or self._reports:
            return ""
        return (
            "kernels compute its composites, or its nodes run in their place"
            if self._idle
            else "it only checks a delegate's accuracy"
        )

    def _place(self, index: int) -> NodeAssignment:
        node = self._nodes[index]
        partition = self._homes.get(index)
        why = {}
        if partition is None:
            why = {self._names[d]: report.unsupported.get(index, "") for d, report in self._reports.items() if report.applied}
        inputs = [-1 if tensor is None else tensor.index for tensor in self._inputs[index]]
        outputs = [tensor.index for tensor in node.outputs]
        return NodeAssignment(index, node.op_name, node.version, inputs, outputs, partition, why)

    def _partition(self, index: int, kernel: Node) -> Partition:
        inputs = [tensor for tensor in kernel.inputs if tensor is not None]
        remark = None if kernel.registration is None else kernel.registration.remark
        return Partition(
            index,
            "" if kernel.delegate is None else self._names[kernel.delegate],
            kernel.index,
            list(self._replaced(kernel)),
            _traffic(tensor for tensor in inputs if not tensor.is_constant),
            _traffic(kernel.outputs),
            _traffic(tensor for tensor in inputs if tensor.is_constant),
            "" if remark is None else remark(kernel, True),
        )

    def _replaced(self, kernel: Node) -> Iterable[int]:
        """Yield the indices of the model's nodes that a kernel replaces, also by way of an earlier delegate's kernels."""
        params = self._subgraph.delegated.kernels.get(kernel.index)
        if params is None:
            yield kernel.index
            return
        for node in params.nodes:
            yield from self._replaced(node)


def _tensor(tensor: Tensor) -> GraphTensor:
    return GraphTensor(tensor.index, tensor.name, tensor.type.name, tensor.shape, _size(tensor), tensor.is_constant)


def _traffic(tensors: Iterable[Tensor]) -> Traffic:
    listed = list(tensors)
    sizes = [_size(tensor) for tensor in listed]
    return Traffic([tensor.index for tensor in listed], sum(filter(None, sizes)), sizes.count(None))


def _sum(parts: Sequence[Traffic]) -> Traffic:
    tensors = [tensor for part in parts for tensor in part.tensors]
    return Traffic(tensors, sum(part.bytes for part in parts), sum(part.unknown for part in parts))


def _size(tensor: Tensor) -> int | None:
    return None if tensor.is_dynamic else bytes_needed(tensor.shape, tensor.type)
