"""The data of a model's graph, for people who look at it: nodes with their providers, costs and groups. All texts are printable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oplet_tools.partitioning.partition import Partition

__all__ = ["Edge", "ExploredModel", "ExploredNode", "ExploredSubgraph", "ExploredTensor", "Group"]


@dataclass(frozen=True)
class ExploredTensor:
    """A tensor."""

    index: int  #: The tensor's index in its subgraph.
    name: str
    type: str  #: The type's name, "FLOAT32".
    shape: list[int]  #: The shape, as far as it is known before the model runs.
    shape_signature: list[int]  #: The shape with -1 for dimensions that may change.
    bytes: int | None  #: The size of its values in bytes; None if unknown: strings, resources, shapes that depend on data.
    constant: bool  #: Whether its value is known before the model runs.
    variable: bool  #: Whether it keeps its value between runs.
    #: None if it is not quantized, else a dictionary with the first `scales` and `zero_points`, the number of scales as `count`,
    #: `dimension` along which they differ, and `block_size` (0 without blocks).
    quantization: dict[str, Any] | None
    values: Any = None  #: The values of a small constant, as nested lists; None for others.


@dataclass(frozen=True)
class ExploredNode:
    """A node of the model; with delegates, also a node that they inlined from a composite."""

    index: int  #: The node's index in its subgraph.
    op: str  #: The operator's name.
    version: int  #: The version of the op in the model.
    inputs: list[int]  #: Indices of its inputs, -1 for one that is left out.
    outputs: list[int]  #: Indices of its outputs.
    options: dict[str, Any]  #: The values of its options, by name.
    served_by: str  #: The delegate or package that computes it, in words; or that nothing does.
    package: str  #: The pip package of its kernel without delegates; "" for the application's own kernels, or if there is none.
    package_version: str  #: That package's version.
    plugin: str  #: That package's plugin.
    library: str  #: The compiled library that the kernel calls, "" if none.
    why: str  #: Why that package's kernel is taken.
    delegate: str  #: The delegate that claims (takes over) it, "" if none.
    partition: int | None  #: The number of its partition; None if no delegate claims it.
    left: dict[str, str]  #: For each delegate that does not claim it, the reason, by the delegate's name.
    composite: str  #: The composite's name, "" if the node is none.
    origin: str  #: The composite whose decomposition it comes from, "" if none.
    calls: list[int]  #: The subgraphs that it may call.
    folded: bool  #: Whether it only prepares constants: everything that it reads is constant, or written by such nodes.
    macs: int | None  #: Multiply-adds of one run; None if unknown. 0 where there are none.
    bytes_read: int  #: The known sizes of the tensors that it reads, in bytes.
    bytes_written: int  #: The known sizes of the tensors that it writes, in bytes.
    #: Measured seconds per inference; None if not measured. For claimed nodes see `ExploredSubgraph.partition_seconds`.
    seconds: float | None = None
    share: float | None = None  #: Its fraction of the time of all nodes; None if not measured.


@dataclass(frozen=True)
class Edge:
    """Tensors that go from one node, or an input of the subgraph, to another, or to an output."""

    source: int  #: A node's index; -1 for an input of the subgraph.
    target: int  #: A node's index; -1 for an output of the subgraph.
    tensors: list[int]  #: Indices of the tensors.


@dataclass(frozen=True)
class Group:
    """A group of nodes that a viewer folds into one box."""

    id: int  #: Its number among the groups of its subgraph.
    label: str
    parent: int | None  #: The id of the group around it; None for an outermost group.
    nodes: list[int]  #: Indices of the nodes directly in the group, not in a nested one.
    open: bool  #: Whether it is unfolded at first, so that a legible number of boxes is shown.
    partition: int | None = None  #: The number of the partition that it stands for, None for other groups.


@dataclass(frozen=True)
class ExploredSubgraph:
    """A subgraph."""

    index: int
    name: str
    inputs: list[int]  #: Indices of its input tensors.
    outputs: list[int]  #: Indices of its output tensors.
    tensors: dict[int, ExploredTensor]  #: The tensors that nodes or callers use, by index.
    nodes: list[ExploredNode]  #: The nodes, in the order in which they run.
    edges: list[Edge]  #: The tensors that connect nodes, without constants.
    groups: list[Group]  #: Groups by the paths in tensors' names.
    partition_groups: list[Group]  #: Groups by partition first, and by names inside; empty without partitions.
    partitions: list[Partition]  #: The sets of nodes that delegates take over, one kernel each.
    partition_seconds: dict[int, float]  #: Measured seconds per inference of each partition's kernel, by the partition's number.
    #: For each delegate that failed on this subgraph and is not applied to it, the error, by the delegate's name.
    errors: dict[str, str]
    skipped: str  #: Why delegates are not applied to this subgraph; "" if they are.


@dataclass(frozen=True)
class ExploredModel:
    """A model."""

    file: str
    delegates: list[str]  #: The delegates' names, in the order in which they were applied.
    choice: str  #: What "auto" chose, "" if it was not asked for.
    error: str  #: The error of a delegate that failed or does not suit the model, or of the allocation; "" if there is none.
    runs: int  #: The number of inferences that were measured, 0 for none.
    seconds: float | None  #: Seconds per inference of all nodes together; None if not measured.
    subgraphs: list[ExploredSubgraph] = field(default_factory=list)  #: All subgraphs.
