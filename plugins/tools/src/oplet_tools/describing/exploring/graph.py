"""The data of a model's graph, for people who look at it: nodes with their providers, costs and groups. All texts are printable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oplet_tools.partitioning.partition import Partition

__all__ = ["Edge", "ExploredModel", "ExploredNode", "ExploredSubgraph", "ExploredTensor", "Group"]


@dataclass(frozen=True)
class ExploredTensor:
    """A tensor.

    Attributes:
        index: the tensor's index in its subgraph.
        name: its name.
        type: the type's name, "FLOAT32".
        shape: the shape, as far as it is known before the model runs.
        shape_signature: the shape with -1 for dimensions that may change.
        bytes: the size of its values in bytes; None if unknown: strings, resources, shapes that depend on data.
        constant: whether its value is known before the model runs.
        variable: whether it keeps its value between runs.
        quantization: None if it is not quantized, else a dictionary with the first `scales` and `zero_points`, the number of scales as
            `count`, `dimension` along which they differ, and `block_size` (0 without blocks).
        values: the values of a small constant, as nested lists; None for others.
    """

    index: int
    name: str
    type: str
    shape: list[int]
    shape_signature: list[int]
    bytes: int | None
    constant: bool
    variable: bool
    quantization: dict[str, Any] | None
    values: Any = None


@dataclass(frozen=True)
class ExploredNode:
    """A node of the model; with delegates, also a node that they inlined from a composite.

    Attributes:
        index: the node's index in its subgraph.
        op: the operator's name.
        version: the version of the op in the model.
        inputs: indices of its inputs, -1 for one that is left out.
        outputs: indices of its outputs.
        options: the values of its options, by name.
        served_by: the delegate or package that computes it, in words; or that nothing does.
        package: the pip package of its kernel without delegates; "" for the application's own kernels, or if there is none.
        package_version: that package's version.
        plugin: that package's plugin.
        library: the compiled library that the kernel calls, "" if none.
        why: why that package's kernel is taken.
        delegate: the delegate that claims (takes over) it, "" if none.
        partition: the number of its partition; None if no delegate claims it.
        left: for each delegate that does not claim it, the reason, by the delegate's name.
        composite: the composite's name, "" if the node is none.
        origin: the composite whose decomposition it comes from, "" if none.
        calls: the subgraphs that it may call.
        folded: whether it only prepares constants: everything that it reads is constant, or written by such nodes.
        macs: multiply-adds of one run; None if unknown. 0 where there are none.
        bytes_read: the known sizes of the tensors that it reads, in bytes.
        bytes_written: the known sizes of the tensors that it writes, in bytes.
        seconds: measured seconds per inference; None if not measured. For claimed nodes see `ExploredSubgraph.partition_seconds`.
        share: its fraction of the time of all nodes; None if not measured.
    """

    index: int
    op: str
    version: int
    inputs: list[int]
    outputs: list[int]
    options: dict[str, Any]
    served_by: str
    package: str
    package_version: str
    plugin: str
    library: str
    why: str
    delegate: str
    partition: int | None
    left: dict[str, str]
    composite: str
    origin: str
    calls: list[int]
    folded: bool
    macs: int | None
    bytes_read: int
    bytes_written: int
    seconds: float | None = None
    share: float | None = None


@dataclass(frozen=True)
class Edge:
    """Tensors that go from one node, or an input of the subgraph, to another, or to an output.

    Attributes:
        source: a node's index; -1 for an input of the subgraph.
        target: a node's index; -1 for an output of the subgraph.
        tensors: indices of the tensors.
    """

    source: int
    target: int
    tensors: list[int]


@dataclass(frozen=True)
class Group:
    """A group of nodes that a viewer folds into one box.

    Attributes:
        id: its number among the groups of its subgraph.
        label: its name.
        parent: the id of the group around it; None for an outermost group.
        nodes: indices of the nodes directly in the group, not in a nested one.
        open: whether it is unfolded at first, so that a legible number of boxes is shown.
        partition: the number of the partition that it stands for, None for other groups.
    """

    id: int
    label: str
    parent: int | None
    nodes: list[int]
    open: bool
    partition: int | None = None


@dataclass(frozen=True)
class ExploredSubgraph:
    """A subgraph.

    Attributes:
        index: the subgraph's index.
        name: its name.
        inputs: indices of its input tensors.
        outputs: indices of its output tensors.
        tensors: the tensors that nodes or callers use, by index.
        nodes: the nodes, in the order in which they run.
        edges: the tensors that connect nodes, without constants.
        groups: groups by the paths in tensors' names.
        partition_groups: groups by partition first, and by names inside; empty without partitions.
        partitions: the sets of nodes that delegates take over, one kernel each.
        partition_seconds: measured seconds per inference of each partition's kernel, by the partition's number.
        errors: for each delegate that failed on this subgraph and is not applied to it, the error, by the delegate's name.
        skipped: why delegates are not applied to this subgraph; "" if they are.
    """

    index: int
    name: str
    inputs: list[int]
    outputs: list[int]
    tensors: dict[int, ExploredTensor]
    nodes: list[ExploredNode]
    edges: list[Edge]
    groups: list[Group]
    partition_groups: list[Group]
    partitions: list[Partition]
    partition_seconds: dict[int, float]
    errors: dict[str, str]
    skipped: str


@dataclass(frozen=True)
class ExploredModel:
    """A model.

    Attributes:
        file: the model's file.
        delegates: the delegates' names, in the order in which they were applied.
        choice: what "auto" chose, "" if it was not asked for.
        error: the error of a delegate that failed or does not suit the model, or of the allocation; "" if there is none.
        runs: the number of inferences that were measured, 0 for none.
        seconds: seconds per inference of all nodes together; None if not measured.
        subgraphs: all subgraphs.
    """

    file: str
    delegates: list[str]
    choice: str
    error: str
    runs: int
    seconds: float | None
    subgraphs: list[ExploredSubgraph] = field(default_factory=list)
