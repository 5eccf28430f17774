"""Writes the nodes of a partition as a small .tflite model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Allocation, BuiltinOperator, Model, ModelBuilder, Node, Tensor, TensorType
from oplet.schema import tables
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.schema.table import Table
from oplet_litert_delegate.composites import add_decomposition

__all__ = ["Part", "Source", "write_part"]


class Source(NamedTuple):
    """The model and subgraph that nodes and tensors come from.

    Attributes:
        model: the model file.
        subgraph: the index of their subgraph.
        tensors: all tensors of the subgraph.
        unpacking: by its output, each node that does nothing but unpack a constant (float16 or sparse weights).
    """

    model: Model
    subgraph: int
    tensors: Sequence[Tensor]
    unpacking: Mapping[Tensor, Node]


Fixed = tuple[Tensor, tuple[int, ...], TensorType, NDArray[Any] | None]


class Part(NamedTuple):
    """A partition written as a model, with its nodes and the tensors at its boundary.

    Attributes:
        content: the model's bytes.
        nodes: for each operator of the written model the partition's node; None for one that only unpacks a constant.
        inputs: the partition's inputs, in the order of the model's.
        outputs: the partition's outputs, in the order of the model's.
        variables: the variable tensors, by their index in the model.
        fixed: the state that the model was written for: shapes and types of the inputs, and values of tensors that follow from
            shapes, which are constants in the model.
    """

    content: bytes
    nodes: list[Node | None]
    inputs: list[Tensor]
    outputs: list[Tensor]
    variables: dict[int, Tensor]
    fixed: list[Fixed]

    @property
    def composites(self) -> list[int]:
        """The positions of composite nodes in the partition."""
        composite = BuiltinOperator.STABLEHLO_COMPOSITE
        return [place for place, node in enumerate(self.nodes) if node is not None and node.op is composite]

    @property
    def fits(self) -> bool:
        """Whether the shapes, types and constants that the model was written for are still those of the graph."""
        return all(
            (tensor.shape, tensor.type) == (shape, type)
            and (value is None or tensor.data is value or np.array_equal(tensor.data, value))
            for tensor, shape, type, value in self.fixed
        )


def write_part(source: Source, nodes: Sequence[Node], outputs: Sequence[Tensor]) -> Part:
    """Write nodes as a model, with the shapes that their tensors have now.

    Args:
        source: the model and subgraph of the nodes.
        nodes: the nodes, in execution order. The nodes that unpack their constants are added.
        outputs: the tensors that are read outside of the nodes.

    Raises:
        ModelError: something in the tables cannot be written.
    """
    writer = _Writer(source)
    made = {tensor for node in nodes for tensor in node.outputs}
    written: list[Node | None] = []
    for node in nodes:
        for tensor in node.inputs:
            if tensor in source.unpacking and tensor not in made and tensor not in writer.places:
                writer.add_node(source.unpacking[tensor])
                written.append(None)
        writer.add_node(node)
        written.append(node)
    writer.graph.set_inputs(*(writer.places[tensor] for tensor in writer.fed))
    writer.graph.set_outputs(*(writer.places[tensor] for tensor in outputs))
    fixed: list[Fixed] = [(tensor, tensor.shape, tensor.type, None) for tensor in writer.fed]
    fixed += [(tensor, tensor.shape, tensor.type, tensor.data) for tensor in writer.computed]
    return Part(writer.builder.to_bytes(), written, writer.fed, list(outputs), writer.variables, fixed)


class _Writer:
    """Writes tensors and nodes; constants stay views of the file until the model is serialized.

    Attributes:
        places: each tensor's number in the model that is written.
        fed: the tensors that are its inputs.
        computed: the tensors that are constants in it, and whose values are not in the original file.
        variables: by number, the tensors that keep their values from one run to the next.
    """

    def __init__(self, source: Source) -> None:
        self.builder = ModelBuilder("a part of a model", minimum_runtime=False)
        self.graph = self.builder.add_subgraph()
        self.places: dict[Tensor, int] = {}
        self.fed: list[Tensor] = []
        self.computed: list[Tensor] = []
        self.variables: dict[int, Tensor] = {}
        self._source = source
        self._tables = (source.model.root.subgraphs or ())[source.subgraph].tensors or ()
        self._buffers: dict[tuple[int, int], int] = {}
        self._decompositions: dict[int, int] = {}

    def add_node(self, node: Node) -> None:
        custom = node.op is BuiltinOperator.CUSTOM
        inputs = [None if tensor is None else self.add_read(tensor) for tensor in node.inputs]
        # Only their quantization counts, and what else the file may use such a tensor for is another's.
        parameters = [self._new(tensor) for tensor in node.intermediates]
        self.graph.add_operator(
            node.op_name if custom else node.op,
            inputs,
            [self._add(tensor) for tensor in node.outputs],
            self._options(node),
            version=node.version,
            custom=custom,
            custom_options=bytes(node.custom_options),
            intermediates=parameters,
        )

    def add_read(self, tensor: Tensor) -> int:
        """Add a tensor that a node reads, once: a constant, a variable, or an input."""
        if tensor in self.places:
            return self.places[tensor]
        if tensor.is_variable:
            place = self._add(tensor, is_variable=True)
            self.variables[place] = tensor
            return place
        if not tensor.is_constant:
            self.fed.append(tensor)
            return self._add(tensor)
        table = self._tables[tensor.index]
        # A node may write a tensor that has bytes in the file, too: then these are not its value.
        if tensor.allocation is not Allocation.CONSTANT or self._source.model.tensor_bytes(table) is None:
            self.computed.append(tensor)
            return self._add(tensor, data=tensor.data)
        return self._add(tensor, buffer=self._buffer(table), sparsity=table.sparsity)

    def _buffer(self, table: tables.Tensor) -> int | None:
        """Return the buffer index of a constant's bytes, None if not constant; tensors share buffers as in the file."""
        key = table.buffer, table.external_buffer
        if key not in self._buffers:
            content = self._source.model.tensor_bytes(table)
            if content is None:
                return None
            self._buffers[key] = self.builder.add_buffer(content)
        return self._buffers[key]

    def _options(self, node: Node) -> Table | None:
        """Return a node's options; a composite's decomposition is added to the model."""
        options = node.raw_options
        if not isinstance(options, StableHLOCompositeOptions):
            return options
        index = options.decomposition_subgraph_index
        if index not in self._decompositions:
            self._decompositions[index] = add_decomposition(self.builder, self._source.model, options, self._buffer)
        written = copy.copy(options)
        written.decomposition_subgraph_index = self._decompositions[index]
        return written

    def _add(self, tensor: Tensor, **content: Any) -> int:
        if tensor not in self.places:
            self.places[tensor] = self._new(tensor, **content)
        return self.places[tensor]

    def _new(self, tensor: Tensor, **content: Any) -> int:
        table = self._tables[tensor.index]
        quantization = self._quantization(table)
        return self.graph.add_tensor(table.name or "", tensor.type, tensor.shape, quantization=quantization, **content)

    def _quantization(self, table: tables.Tensor) -> tables.QuantizationParameters | None:
        """Return the tensor's quantization, with references to other tensors renumbered."""
        given = table.quantization
        if given is None or not isinstance(given.details, tables.BlockwiseQuantization):
            return given
        quantization, details = copy.copy(given), copy.copy(given.details)
        for role in ("scales", "zero_points"):
            if (index := getattr(details, role)) >= 0:
                setattr(details, role, self.add_read(self._source.tensors[index]))
        quantization.details = details
        return quantization
