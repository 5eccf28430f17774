"""Each node of a model alone, fed LiteRT's own intermediate values: where does oplet depart from all of LiteRT's ways?

In a net, a difference of one step early on hides what the nodes behind it do. So the model is run in LiteRT with every tensor as an
output, and each node becomes a model of its own, which oplet and LiteRT's three ways get the same values for.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.differential.harness import Case, LiteRT

from oplet import Interpreter, Model, TensorType
from oplet.schema import tables
from oplet.schema.encode import encode

__all__ = ["WAYS", "Verdict", "alone", "departures", "hybrid", "observed"]

Array = np.ndarray[Any, Any]

#: LiteRT's three ways.
WAYS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN")
_WEIGHTS = (TensorType.INT8, TensorType.INT4, TensorType.INT2, TensorType.UINT8)


@dataclass(frozen=True)
class Verdict:
    """How far a node's answer is from each of LiteRT's.

    Attributes:
        node: its number in the model.
        op: its operator's name.
        distances: for each way that runs the node, the largest difference over the largest magnitude.
        refused: why oplet does not run it, if it does not.
        feeds: what it was fed.
        model: the model of this node alone.
    """

    node: int
    op: str
    distances: dict[str, float]
    refused: str
    feeds: list[Array]
    model: bytes

    @property
    def distance(self) -> float:
        """How far it is from the nearest of LiteRT's ways; infinite where only they run it, 0 where none does."""
        if self.refused and self.distances:
            return float("inf")
        return min(self.distances.values(), default=0.0)


def observed(model: Model) -> tuple[bytes, list[int]]:
    """The model with all that its nodes write as outputs, and which tensors those are."""
    root = copy.copy(model.root)
    graph = copy.copy(root.subgraphs[0])
    written = [int(index) for operator in graph.operators for index in operator.outputs]
    graph.outputs = np.array(written, np.int32)
    root.subgraphs = [graph, *root.subgraphs[1:]]
    root.signature_defs = None
    tensors = {tensor.buffer: tensor for each in root.subgraphs for tensor in each.tensors}
    data = {buffer: model.tensor_bytes(tensor) for buffer, tensor in tensors.items()}  # some lie behind the tables
    found = [data.get(number) for number in range(len(root.buffers))]
    root.buffers = [tables.Buffer() if raw is None else tables.Buffer(data=np.asarray(raw)) for raw in found]
    root.metadata = root.metadata_buffer = None
    return encode(root), written


def alone(model: Model, number: int) -> tuple[bytes, list[int]]:
    """A model of one node, and which of the whole model's tensors it takes."""
    whole = model.root.subgraphs[0]
    operator = copy.copy(whole.operators[number])
    kept: dict[int, int] = {}
    taken: list[tables.Tensor] = []
    buffers = [tables.Buffer()]

    def keep(index: int) -> int:
        if index < 0 or index in kept:
            return kept.get(index, -1)
        kept[index] = len(taken)
        tensor = copy.copy(whole.tensors[index])
        taken.append(tensor)
        data = model.tensor_bytes(tensor)
        tensor.buffer = 0
        if data is not None:
            buffers.append(tables.Buffer(data=np.asarray(data)))
            tensor.buffer = len(buffers) - 1
        quantization = tensor.quantization
        if quantization is not None and isinstance(quantization.details, tables.BlockwiseQuantization):
            details = copy.copy(quantization.details)
            details.scales = keep(details.scales)
            # 0 is what files without zero points have, whatever tensor 0 is.
            details.zero_points = keep(details.zero_points) if details.zero_points > 0 else -1
            tensor.quantization = copy.copy(quantization)
            tensor.quantization.details = details
        return kept[index]

    operator.inputs = np.array([keep(int(i)) for i in operator.inputs], np.int32)
    operator.outputs = np.array([keep(int(i)) for i in operator.outputs], np.int32)
    code = copy.copy(model.root.operator_codes[operator.opcode_index])
    operator.opcode_index = 0
    places = [i for i in dict.fromkeys(whole.operators[number].inputs.tolist()) if i >= 0 and not taken[kept[i]].buffer]
    graph = tables.SubGraph(
        tensors=taken,
        inputs=np.array([kept[i] for i in places], np.int32),
        outputs=operator.outputs,
        operators=[operator],
        name="alone",
    )
    return encode(tables.Model(version=3, operator_codes=[code], subgraphs=[graph], buffers=buffers)), places


def hybrid(model: Model, number: int) -> bool:
    """Whether a node multiplies float activations with integer weights."""
    graph = model.root.subgraphs[0]
    inputs = graph.operators[number].inputs
    types = [TensorType(graph.tensors[i].type) for i in (() if inputs is None else inputs.tolist()) if i >= 0]
    return types[:1] == [TensorType.FLOAT32] and any(type in _WEIGHTS for type in types)


def departures(
    data: bytes, feeds: list[Array], litert: LiteRT, chosen: Callable[[Model, int], bool] = hybrid, **arguments: Any
) -> Iterator[Verdict]:
    """What each chosen node of a model does with LiteRT's values, beside LiteRT's ways.

    Args:
        feeds: one array for each input of the model.
        litert: runs LiteRT in a process of its own.
        chosen: says of a node whether it is looked at.
        **arguments: of oplet's interpreter.
    """
    model = Model.from_bytes(data)
    numbers = [number for number in range(len(model.root.subgraphs[0].operators)) if chosen(model, number)]
    if not numbers:
        return
    everything, written = observed(model)
    answer = litert.run(Case(everything, [feeds]), "BUILTIN_WITHOUT_DEFAULT_DELEGATES", seconds=60)
    if answer.kind != "ran":
        raise RuntimeError(f"LiteRT does not run the model: {answer.kind} {answer.message}")
    values = dict(zip(model.root.subgraphs[0].inputs.tolist(), feeds)) | dict(zip(written, answer.outputs[0]))
    for number in numbers:
        single, places = alone(model, number)
        if not values.keys() >= set(places):
            continue  # it reads a state, whose value of before is not among the outputs
        given = [values[place] for place in places]
        ours, refused = _run(single, given, arguments)
        distances = {}
        for way in WAYS:
            theirs = litert.run(Case(single, [given]), way, seconds=60)
            if theirs.kind == "ran":
                distances[way] = float("inf") if ours is None else _distance(ours, theirs.outputs[0][0])
        operator = model.root.operator_codes[model.root.subgraphs[0].operators[number].opcode_index]
        op = tables.BuiltinOperator(tables.operator_code(operator)).name
        yield Verdict(number, op, distances, refused, given, single)


def _run(data: bytes, feeds: list[Array], arguments: dict[str, Any]) -> tuple[Array | None, str]:
    try:
        interpreter = Interpreter(model_content=data, **arguments)
        details = interpreter.get_input_details()
        for detail, feed in zip(details, feeds):
            if tuple(detail["shape"]) != feed.shape:
                interpreter.resize_tensor_input(detail["index"], feed.shape)
        interpreter.allocate_tensors()
        for detail, feed in zip(details, feeds):
            interpreter.set_tensor(detail["index"], feed)
        interpreter.invoke()
        return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])), ""
    except (RuntimeError, ValueError) as error:
        return None, str(error)


def _distance(ours: Array, theirs: Array) -> float:
    if ours.shape != theirs.shape:
        return float("inf")
    if not ours.size:
        return 0.0
    largest = max(float(np.abs(theirs, dtype=np.float64).max()), 1e-30)
    return float(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max()) / largest
