"""The nodes of a partition as a small .tflite model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from oplet import BuiltinOperator, DelegateContext, ModelBuilder, Node, Tensor
from oplet.schema import tables

__all__ = ["Part", "write_part"]


class Part(NamedTuple):
    """A partition, written.

    Attributes:
        content: the model.
        nodes: the partition's nodes at the places that they have in it; None for one that only unpacks a constant.
        inputs: the tensors that it is fed with, in the order of the model's inputs.
        outputs: the tensors that are read from it, in the order of the model's outputs.
        computed: the tensors that are constants in it, and only follow from shapes in the graph, with their values.
    """

    content: bytes
    nodes: list[Node | None]
    inputs: list[Tensor]
    outputs: list[Tensor]
    computed: list[tuple[Tensor, NDArray[Any]]]


def write_part(
    context: DelegateContext, nodes: Sequence[Node], outputs: Sequence[Tensor], unpacking: Mapping[Tensor, Node]
) -> Part:
    """Write nodes as a model, with the shapes that their tensors have now.

    Args:
        context: of the subgraph whose nodes they are.
        nodes: in the order in which they run.
        outputs: what others read from them.
        unpacking: by its output, each node that unpacks a constant; those that the nodes need are written along.

    Raises:
        ModelError: something in the tables cannot be written.
    """
    writer = _Writer(context)
    made = {tensor for node in nodes for tensor in node.outputs}
    written: list[Node | None] = []
    for node in nodes:
        for tensor in node.inputs:
            if tensor in unpacking and tensor not in made and tensor not in writer.places:
                writer.add_node(unpacking[tensor])
                written.append(None)
        writer.add_node(node)
        written.append(node)
    writer.graph.set_inputs(*(writer.places[tensor] for tensor in writer.fed))
    writer.graph.set_outputs(*(writer.places[tensor] for tensor in outputs))
    return Part(writer.builder.to_bytes(), written, writer.fed, list(outputs), writer.computed)


class _Writer:
    """Adds tensors and nodes; constants stay views of the file until all is put together."""

    def __init__(self, context: DelegateContext) -> None:
        self.builder = ModelBuilder("a part of a model", minimum_runtime=False)
        self.graph = self.builder.add_subgraph()
        self.places: dict[Tensor, int] = {}
        self.fed: list[Tensor] = []
        self.computed: list[tuple[Tensor, NDArray[Any]]] = []
        self._model, self._tensors = context.model, context.tensors
        self._tables = (self._model.root.subgraphs or [])[context.subgraph_index].tensors or []
        self._buffers: dict[tuple[int, int], int] = {}

    def add_node(self, node: Node) -> None:
        custom = node.op is BuiltinOperator.CUSTOM
        inputs = [None if tensor is None else self.add_read(tensor) for tensor in node.inputs]
        parameters = [self._add(tensor) for tensor in node.intermediates]
        self.graph.add_operator(
            node.op_name if custom else node.op,
            inputs,
            [self._add(tensor) for tensor in node.outputs],
            node.raw_options,
            version=node.version,
            custom=custom,
            custom_options=bytes(node.custom_options),
            intermediates=parameters,
        )

    def add_read(self, tensor: Tensor) -> int:
        """Add a tensor that a node reads, unless it is there: a constant, or else one that is fed."""
        if tensor in self.places:
            return self.places[tensor]
        if not tensor.is_constant:
            self.fed.append(tensor)
            return self._add(tensor)
        table = self._tables[tensor.index]
        content = self._model.tensor_bytes(table)
        if content is None:
            self.computed.append((tensor, tensor.data))
            return self._add(tensor, data=tensor.data)
        key = table.buffer, table.external_buffer
        if key not in self._buffers:
            self._buffers[key] = self.builder.add_buffer(content)
        return self._add(tensor, buffer=self._buffers[key], sparsity=table.sparsity)

    def _add(self, tensor: Tensor, **content: Any) -> int:
        if tensor not in self.places:
            table = self._tables[tensor.index]
            self.places[tensor] = self.graph.add_tensor(
                table.name or "", tensor.type, tensor.shape, quantization=self._quantization(table), **content
            )
        return self.places[tensor]

    def _quantization(self, table: tables.Tensor) -> tables.QuantizationParameters | None:
        """The tensor's, with the tensors that it names at their places here."""
        given = table.quantization
        if given is None or not isinstance(given.details, tables.BlockwiseQuantization):
            return given
        quantization, details = copy.copy(given), copy.copy(given.details)
        for role in ("scales", "zero_points"):
            if (index := getattr(details, role)) >= 0:
                setattr(details, role, self.add_read(self._tensors[index]))
        quantization.details = details
        return quantization
