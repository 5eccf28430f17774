"""Exploration of a model: its graph as data, see `oplet_tools.describing.exploring.graph`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oplet import Interpreter, Node, Tensor
from oplet.texts import plain
from oplet.toolkit import NodeReport, bytes_needed
from oplet_tools.describing.exploring.graph import Edge, ExploredModel, ExploredNode, ExploredSubgraph, ExploredTensor
from oplet_tools.describing.exploring.groups import group_nodes, path_of
from oplet_tools.describing.printable import MOST_VALUES, custom_options_of, plain_options, plain_values
from oplet_tools.describing.work import work_of_nodes
from oplet_tools.partitioning.partition import GraphTensor, NodeAssignment, SubgraphPartitioning, partition_interpreter

if TYPE_CHECKING:
    from oplet import Delegate, PluginManager, Work
    from oplet.toolkit import Subgraph

__all__ = ["Times", "explore_model"]

#: Scales of a tensor that are listed; a tensor may have thousands.
_FEW_SCALES = 8
#: Values of an option that are listed.
_FEW_VALUES = 64

#: Measured seconds per inference by subgraph and node, and the number of inferences.
Times = tuple[Mapping[tuple[int, int], float], int]


def explore_model(
    model: str | os.PathLike[str],
    make_delegates: Callable[[], Sequence[Delegate]] = tuple,
    plugins: PluginManager | None = None,
    *,
    times: Times | None = None,
    choice: str = "",
) -> ExploredModel:
    """Describe a model's graph and the nodes that delegates claim, for viewers. The model does not run.

    Args:
        model: the .tflite file.
        make_delegates: makes the delegates, in the order in which they claim nodes.
        plugins: the plugins that provide kernels; all installed ones by default.
        times: measured seconds of nodes and delegate kernels, as `measure_nodes` returns them; None to leave them out.
        choice: the choice of "auto", in words, to be shown; "" without it.

    Raises:
        ModelError: the file cannot be read or is not a valid model.
        DelegateError: a delegate cannot be made.
    """
    interpreter = Interpreter(model, plugins=plugins)
    try:
        services = {(report.subgraph, report.node): report for report in interpreter.explain()}
        work = work_of_nodes(interpreter, plugins)
        result = partition_interpreter(interpreter, make_delegates())
        services |= {(report.subgraph, report.node): report for report in interpreter.explain() if report.why}
        seconds, runs = times or ({}, 0)
        whole = sum(seconds.values())
        subgraphs = [
            _Explorer(interpreter.subgraphs[cut.index], cut, services, work, seconds, whole, bool(result.delegates)).explored()
            for cut in result.subgraphs
        ]
    finally:
        interpreter.close()
    return ExploredModel(
        plain(result.file), [*map(plain, result.delegates)], choice, plain(result.error), runs, whole if runs else None, subgraphs
    )


@dataclass(eq=False)
class _Explorer:
    """Makes the `ExploredSubgraph` of one subgraph."""

    subgraph: Subgraph
    cut: SubgraphPartitioning
    services: Mapping[tuple[int, int], NodeReport]
    work: Mapping[tuple[int, int], Work]
    seconds: Mapping[tuple[int, int], float]
    whole: float
    asked: bool

    def __post_init__(self) -> None:
        self.owners = {partition.index: partition.delegate for partition in self.cut.partitions}
        self.folded = self._preparing()

    def explored(self) -> ExploredSubgraph:
        cut = self.cut
        nodes = [self._node(place) for place in cut.nodes]
        edges = self._edges()
        kernels = {partition.index: (cut.index, partition.kernel) for partition in cut.partitions}
        return ExploredSubgraph(
            cut.index,
            plain(cut.name),
            cut.inputs,
            cut.outputs,
            {index: _tensor(self.subgraph.tensors[index], tensor) for index, tensor in cut.tensors.items()},
            nodes,
            edges,
            *self._groups(edges),
            [replace(partition, delegate=plain(partition.delegate)) for partition in cut.partitions],
            {index: self.seconds[place] for index, place in kernels.items() if place in self.seconds},
            {plain(name): plain(error) for name, error in cut.errors.items()},
            cut.skipped if self.asked else "",
        )

    def _preparing(self) -> set[int]:
        """Return the nodes that only prepare constants, such as a DEQUANTIZE of weights."""
        constants = {index for index, tensor in self.cut.tensors.items() if tensor.constant}
        folded = set()
        for node in self.cut.nodes:
            read = [index for index in node.inputs if index >= 0]
            if read and constants.issuperset(read) and not self._calls(node.index):
                folded.add(node.index)
                constants.update(node.outputs)
        return folded - {node.index for node in self.cut.nodes if {*node.outputs} & {*self.cut.outputs}}

    def _calls(self, index: int) -> list[int]:
        options = self.subgraph.nodes[index].raw_options
        if options is None:
            return []
        named = [getattr(options, f.name) for f in options.fields if f.name.endswith("subgraph_index")]
        return [number for number in named if isinstance(number, int) and number >= 0]

    def _node(self, place: NodeAssignment) -> ExploredNode:
        node = self.subgraph.nodes[place.index]
        report = self.services.get((self.cut.index, place.index))
        package = report.distribution if report else ""
        version = report.distribution_version if report else ""
        plugin = report.plugin if report else ""
        delegate = "" if place.partition is None else self.owners[place.partition]
        told = f"{package} {version}".strip() or plugin or "nobody"
        seconds = self.seconds.get((self.cut.index, place.index))
        work = self.work.get((self.cut.index, place.index))
        read, written = ([self.cut.tensors[t] for t in ends if t >= 0] for ends in (place.inputs, place.outputs))
        return ExploredNode(
            place.index,
            plain(place.op),
            place.version,
            place.inputs,
            place.outputs,
            _options(node),
            plain(f"{delegate}, partition {place.partition}" if delegate else told),
            plain(package),
            plain(version),
            plain(plugin),
            plain(report.library) if report else "",
            plain(report.why) if report else "",
            plain(delegate),
            place.partition,
            {plain(name): plain(reason) for name, reason in place.why.items()},
            plain(node.composite_name),
            plain(node.origin),
            self._calls(place.index),
            place.index in self.folded,
            work.macs if work else None,
            sum(tensor.bytes or 0 for tensor in read),
            sum(tensor.bytes or 0 for tensor in written),
            seconds,
            seconds / self.whole if seconds is not None and self.whole else None,
        )

    def _edges(self) -> list[Edge]:
        """Return the edges of a subgraph. A reader is connected to the last node that wrote the tensor, which matters for
        variables.
        """
        makers = dict.fromkeys(self.cut.inputs, -1)
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for node in self.cut.nodes:
            for tensor in dict.fromkeys(node.inputs):
                if tensor in makers:
                    found[makers[tensor], node.index].append(tensor)
            makers.update(dict.fromkeys(node.outputs, node.index))
        for tensor in dict.fromkeys(self.cut.outputs):
            if tensor in makers:
                found[makers[tensor], -1].append(tensor)
        return [Edge(source, target, tensors) for (source, target), tensors in found.items()]

    def _groups(self, edges: Sequence[Edge]) -> tuple[Any, Any]:
        nodes = [node for node in self.cut.nodes if node.index not in self.folded]
        paths: dict[int, tuple[str, ...]] = {}
        before = {edge.target: edge.source for edge in reversed(edges)}
        for node in nodes:
            name = self.cut.tensors[node.outputs[0]].name if node.outputs else ""
            # A name without a path, such as an output's, says nothing of the layer; what it is computed from does.
            paths[node.index] = tuple(map(plain, path_of(name))) or paths.get(before.get(node.index, -1), ())
        live = _live([node.index for node in nodes], edges)
        ops = {node.index: plain(node.op) for node in nodes}
        numbers = {
            node.index: (node.partition, f"partition {node.partition}: {plain(self.owners[node.partition])}")
            for node in nodes
            if node.partition is not None
        }
        kernels = {partition.kernel for partition in self.cut.partitions}
        stays, before_it = {}, 0
        for index in self.cut.plan:
            before_it += index in kernels
            stays[index] = before_it
        return group_nodes(paths, live, ops), group_nodes(paths, live, ops, numbers, stays) if numbers else []


def _live(order: Sequence[int], edges: Sequence[Edge]) -> list[int]:
    """Return for each position in `order` the number of edges that lead from nodes up to there to later nodes."""
    places = {node: place for place, node in enumerate(order)}
    change = [0] * (len(order) + 1)
    for edge in edges:
        if edge.source in places and edge.target in places:
            change[places[edge.source]] += 1
            change[places[edge.target]] -= 1
    live, crossing = [], 0
    for step in change[: len(order)]:
        crossing += step
        live.append(crossing)
    return live


def _tensor(tensor: Tensor, described: GraphTensor) -> ExploredTensor:
    size = described.bytes
    if tensor.is_constant and size is None:
        size = bytes_needed(tensor.shape, tensor.type)
    return ExploredTensor(
        tensor.index,
        plain(tensor.name),
        tensor.type.name,
        [int(length) for length in tensor.shape],
        [int(length) for length in tensor.shape_signature],
        size,
        described.constant,
        tensor.is_variable,
        _quantization(tensor),
        _values(tensor),
    )


def _values(tensor: Tensor) -> Any:
    """Return the values of a small constant; None of others, and of those that are stored sparse."""
    if not tensor.is_constant or tensor.sparsity is not None or tensor.data.size > MOST_VALUES:
        return None
    return _printable(plain_values(tensor.data))


def _quantization(tensor: Tensor) -> dict[str, Any] | None:
    quantization = tensor.quantization
    if quantization is None or not quantization.scales.size:
        return None
    scales, zero_points = quantization.scales.ravel(), quantization.zero_points.ravel()
    return {
        "scales": [float(scale) for scale in scales[:_FEW_SCALES]],
        "zero_points": [int(point) for point in zero_points[:_FEW_SCALES]],
        "count": int(scales.size),
        "dimension": int(quantization.quantized_dimension),
        "block_size": int(quantization.block_size),
    }


def _options(node: Node) -> dict[str, Any]:
    table = node.raw_options
    options: dict[str, Any] = {} if table is None else _printable(plain_options(table))
    if node.custom_options:
        found = custom_options_of(node.custom_options)
        told = (
            found
            if isinstance(found, dict)
            else {"custom options": found if isinstance(found, list) else f"{len(node.custom_options)} bytes: {found}"}
        )
        options |= _printable(told)
    return options


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value, 8000)
    if isinstance(value, dict):
        return {plain(str(key)): _printable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_printable(inner) for inner in value[:_FEW_VALUES]] + (
            [f"and {len(value) - _FEW_VALUES} more"] if len(value) > _FEW_VALUES else []
        )
    return value
