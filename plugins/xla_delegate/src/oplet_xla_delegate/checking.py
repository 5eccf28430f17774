"""Comparison of a compiled function with oplet's own kernels, on random values."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter, Limits, Model, ModelBuilder, Node, Tensor, TensorType
from oplet.errors import OpletError
from oplet_xla_delegate.device import logger
from oplet_xla_delegate.quantization import QUANTIZED, is_quantized

__all__ = ["Case", "Reference"]

#: Partitions whose inputs, constants and outputs take more bytes are not compared.
_MOST_BYTES = 512 << 20
#: The part of values that may differ, as numbers near a step may fall to its other side.
_STRAYS = 1e-3
_HALVES = (TensorType.FLOAT16, TensorType.BFLOAT16)


class Case(NamedTuple):
    """A test case of a partition: input values, and the outputs that oplet's kernels compute from them."""

    given: list[NDArray[Any]]  #: The input values.
    wanted: list[NDArray[Any]]  #: The kernels' output values.
    outputs: Sequence[Tensor]  #: The output tensors.
    nodes: Sequence[Node]  #: The partition's nodes.

    def differs(self, answers: Sequence[NDArray[Any]], precision: str) -> str:
        """Return how a function's outputs differ from the kernels', in words; "" if they agree as far as `precision` allows."""
        narrow = precision != "highest" or any(t.type in _HALVES for node in self.nodes for t in node.outputs)
        for tensor, got, wanted in zip(self.outputs, answers, self.wanted):
            if got.shape != wanted.shape:
                return f"it makes {list(got.shape)} of {tensor}"
            a, b = got.astype(np.float64), wanted.astype(np.float64)
            if wanted.dtype.kind in "iub":
                # Steps add up from layer to layer, as they do among LiteRT's own kernels.
                wrong = np.abs(a - b) > (1 + len(self.nodes) // 4 if is_quantized(tensor) else 0)
            else:
                finite = np.abs(b[np.isfinite(b)])
                scale = max(1.0, float(finite.max(initial=0.0)))
                wrong = ~np.isclose(a, b, rtol=3e-2 if narrow else 1e-3, atol=(2e-2 if narrow else 1e-4) * scale, equal_nan=True)
            if wrong.sum() > _STRAYS * wrong.size:
                first = np.argwhere(wrong)[0].tolist()
                return f"{tensor} has {got[tuple(first)]} at {first}, not {wanted[tuple(first)]}, and {wrong.sum()} of {wrong.size} differ"
        return ""


class Reference:
    """Runs nodes of one subgraph by oplet's kernels, for comparison.

    Args:
        subgraph: the subgraph's index.

    Attributes:
        iterations: the most iterations of a loop in a comparison.
    """

    iterations = 1000

    def __init__(self, model: Model, subgraph: int) -> None:
        self._model = model
        self._subgraph = subgraph

    def case(self, nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor], size: int) -> Case | None:
        """Make a test case of random inputs; None if it would take too long or too much memory, or the kernels refuse the inputs.

        Args:
            nodes: the partition's nodes.
            inputs: the input tensors.
            outputs: the output tensors.
            size: the bytes of memory that the partition takes.
        """
        if size > _MOST_BYTES:
            logger.info("A partition of %d nodes is not compared with oplet's kernels: it has %d bytes.", len(nodes), size)
            return None
        fed = [tensor for tensor in inputs if not tensor.is_constant]
        random = np.random.default_rng(0)
        given = [_values(tensor, random) for tensor in fed]
        try:
            limits = Limits(max_while_iterations=self.iterations, max_seconds=60.0)
            interpreter = Interpreter(model_content=self._content(nodes, inputs, outputs), limits=limits)
            for detail, value in zip(interpreter.get_input_details(), given):
                if tuple(detail["shape"]) != value.shape:
                    interpreter.resize_tensor_input(detail["index"], value.shape)
            interpreter.allocate_tensors()
            for detail, value in zip(interpreter.get_input_details(), given):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
            wanted = [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]
        except OpletError as error:  # positions that are nowhere, loops that do not end
            logger.info("A partition of %d nodes is not compared with oplet's kernels: %s", len(nodes), error)
            return None
        return Case(given, wanted, outputs, nodes)

    def _content(self, nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bytes:
        """Return a model whose main subgraph has these nodes only."""
        builder = ModelBuilder.from_model(self._model, minimum_runtime=False)
        root = builder.root
        root.signature_defs, root.metadata = [], []
        graphs = root.subgraphs
        if graphs is None:
            return b""
        table = graphs[self._subgraph]
        # The order that is followed is the model's, not that of indices.
        operators, tensors = list(table.operators or ()), list(table.tensors or ())
        table.operators = [operators[node.index] for node in nodes]
        for tensor in inputs:
            if tensor.is_constant and tensor.index < len(tensors):
                written = copy.copy(tensors[tensor.index])
                if self._model.tensor_bytes(written) is None:  # the runtime computed it
                    written.buffer = builder.add_buffer(tensor.data.tobytes())
                    written.shape = np.array(tensor.shape, np.int32)
                    tensors[tensor.index] = written
        table.tensors = tensors
        table.inputs = np.array([tensor.index for tensor in inputs if not tensor.is_constant], np.int32)
        table.outputs = np.array([tensor.index for tensor in outputs], np.int32)
        if self._subgraph:
            graphs[0], graphs[self._subgraph] = table, graphs[0]
        return bytes(builder.to_bytes())


def _values(tensor: Tensor, random: np.random.Generator) -> NDArray[Any]:
    kind = tensor.dtype.kind
    if kind == "b":
        return random.integers(0, 2, tensor.shape).astype(tensor.dtype)
    if tensor.type in QUANTIZED and is_quantized(tensor):
        limits = np.iinfo(tensor.dtype)
        return random.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype)
    if kind in "iu":  # positions, counters
        return random.integers(0, 2, tensor.shape).astype(tensor.dtype)
    return random.standard_normal(tensor.shape).astype(tensor.dtype)
