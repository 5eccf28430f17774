"""Versions against what converters wrote: of every node of the recorded models, and of the runtimes that they call for.

A difference needs an explanation by name. An explanation is a predicate, so that it covers what it describes and nothing else;
one that no difference needs any more fails the test.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.kinds import part
from tests.places import CONFORMANCE, SHARED
from tests.recorded_cases import ALL_GROUPS, chosen

from oplet import Model
from oplet.errors import ModelError
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.schema.table import Table
from oplet.schema.tables import QuantizationParameters, Tensor
from oplet.versions.op_version import LOWEST, RULES, op_version
from oplet.versions.runtime_version import minimum_runtime

pytestmark = [
    pytest.mark.sweep(cases=True),
    pytest.mark.skipif(not ALL_GROUPS, reason="the recorded cases lie outside the project and are not here"),
]

Tensors = Sequence["Tensor | None"]


class Node(NamedTuple):
    """A node of a built-in operator.

    Attributes:
        code: index of its operator code, which other nodes may share.
        version: what the file says.
        needed: what op_version says.
        as_float: what op_version says of the node as it was before quantization.
    """

    op: BuiltinOperator
    inputs: Tensors
    outputs: Tensors
    options: Table | None
    code: int
    version: int
    needed: int
    as_float: int


@dataclasses.dataclass
class Recorded:
    """A model of the corpus.

    Attributes:
        name: archive and case, "conv/conv_001".
        model: the decoded file.
        nodes: its nodes of built-in operators.
        runtime: the metadata entry `min_runtime_version`, None if it has none; "" where no operator has a known runtime.
        quantized: the types of its quantized tensors.
    """

    name: str
    model: Model
    nodes: list[Node]
    runtime: str | None
    quantized: set[int]

    def highest(self, code: int, version: Callable[[Node], int]) -> int:
        """The highest version among the nodes that share an operator code."""
        return max(version(node) for node in self.nodes if node.code == code)


def has_scales(tensor: Tensor) -> bool:
    return tensor.quantization is not None and tensor.quantization.scale is not None and len(tensor.quantization.scale) > 0


def as_float(tensor: Tensor) -> Tensor:
    return Tensor(shape=tensor.shape) if has_scales(tensor) else tensor


def as_quantized(tensor: Tensor) -> Tensor:
    """A quantization table without scales, read as one that has them."""
    if tensor.quantization is None or has_scales(tensor):
        return tensor
    return Tensor(**{**tensor.__dict__, "quantization": QuantizationParameters(scale=np.ones(1, np.float32))})


def version_with(
    change: Callable[[Tensor], Tensor], op: BuiltinOperator, inputs: Tensors, outputs: Tensors, options: Table | None
) -> int:
    """The version that a node would need if its tensors were others."""
    return op_version(op, [t and change(t) for t in inputs], [t and change(t) for t in outputs], options)


def nodes_of(model: Model) -> Iterator[Node]:
    for subgraph in model.root.subgraphs or []:
        tensors = subgraph.tensors or []

        def chosen(indices: Sequence[int] | None, tensors: Sequence[Tensor] = tensors) -> Tensors:
            return [tensors[i] if 0 <= i < len(tensors) else None for i in (() if indices is None else indices)]

        for operator in subgraph.operators or []:
            if operator.opcode_index >= len(model.root.operator_codes or []):
                continue
            op, _, version = model.op_of(operator)
            if op is BuiltinOperator.CUSTOM:
                continue
            node = op, chosen(operator.inputs), chosen(operator.outputs), operator.builtin_options or operator.builtin_options_2
            yield Node(*node, operator.opcode_index, version, op_version(*node), version_with(as_float, *node))


def read(name: str, data: bytes) -> Recorded | None:
    try:
        model = Model.from_bytes(data)
    except ModelError:  # some recorded models are no models
        return None
    entry = model.metadata("min_runtime_version")
    runtime = None if entry is None else bytes(entry).rstrip(b"\0").decode("ascii")
    tensors = (t for subgraph in model.root.subgraphs or [] for t in subgraph.tensors or [])
    return Recorded(name, model, list(nodes_of(model)), runtime, {t.type for t in tensors if has_scales(t)})


@pytest.fixture(scope="module")
def recorded() -> list[Recorded]:
    return [model for case in chosen(*ALL_GROUPS) if (model := read(case.id, case.model())) is not None]


#: What TensorFlow's quantizer after conversion raises operators to (tflite/converter/tools/optimize/operator_property.cc), 1 the
#: rest. They are the versions of int8 kernels, also in models with 16-bit activations, and it asks no node for its types.
INT8_VERSIONS = {
    op: version
    for version, ops in {
        2: "ABS ADD ARG_MAX AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND CONCATENATION DEPTH_TO_SPACE EQUAL EXP GATHER "
        "GELU GREATER GREATER_EQUAL L2_NORMALIZATION LEAKY_RELU LESS LESS_EQUAL LOG LOGISTIC LOG_SOFTMAX LSTM MAXIMUM "
        "MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NOT_EQUAL PACK PAD PADV2 REDUCE_MAX REDUCE_MIN REDUCE_PROD RELU RELU6 "
        "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR RSQRT SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQRT "
        "SQUARED_DIFFERENCE STRIDED_SLICE SUB SUM TANH TRANSPOSE UNIDIRECTIONAL_SEQUENCE_LSTM",
        3: "BROADCAST_TO CONV_2D DEPTHWISE_CONV_2D FILL GATHER_ND REVERSE_V2 SVDF TILE TRANSPOSE_CONV",
        4: "FULLY_CONNECTED",
    }.items()
    for op in ops.split()
}


def by_calibration(node: Node) -> int:
    """What TensorFlow's quantizer after conversion writes; it adds QUANTIZE 1 and DEQUANTIZE 2, whatever their types."""
    if node.op.name in ("QUANTIZE", "DEQUANTIZE"):
        return 1 if node.op.name == "QUANTIZE" else 2
    return max(node.as_float, INT8_VERSIONS.get(node.op.name, 1))


#: Why a node's version is not the lowest that it needs; the first that holds counts.
EXPLAINED: dict[str, Callable[[Recorded, Node], bool]] = {
    # Converters write one operator code for all nodes of an operator.
    "another node of the operator needs it": lambda model, node: node.version == model.highest(node.code, lambda n: n.needed),
    # Written with the version that the recording was about, to see what kernels do.
    "the case was written by hand": lambda model, node: model.name.startswith("hand_"),
    "TensorFlow's calibrating quantizer writes the versions of int8 kernels for int16 activations too": lambda model, node: (
        TensorType.INT16 in model.quantized and node.version == model.highest(node.code, by_calibration)
    ),
    # tflite/tools/optimize/model_utils.cc: the version of INT8, which the first float16 models have for their weights.
    "the old weight quantizer adds every DEQUANTIZE as version 2": lambda model, node: (
        node.op.name == "DEQUANTIZE" and node.version == 2 and input_type(node) == TensorType.FLOAT16
    ),
    # ai-edge-quantizer's recipes, and models made from them.
    "a quantizer kept the versions of the float model": lambda model, node: (
        bool(model.quantized) and node.version == model.highest(node.code, lambda n: n.as_float)
    ),
    # The converter gives every tensor a quantization table, and LiteRT's rules take any for quantization; its kernels do not.
    "LiteRT takes an empty quantization table for quantization": lambda model, node: (
        input_type(node) == TensorType.INT16
        and node.version == version_with(as_quantized, node.op, node.inputs, node.outputs, node.options)
    ),
    # Google's converter from Keras, 2021, which wrote versions of its own.
    "keras2tflite does not raise RESIZE_BILINEAR for half_pixel_centers": lambda model, node: (
        node.op.name == "RESIZE_BILINEAR"
        and node.version == 1
        and (model.model.root.description or "").startswith("keras2tflite")
    ),
    "LiteRT's developers wrote these test files by hand": lambda model, node: (
        model.name in ("unrunnable/litert_testdata__test_model_versioned_ops", "unrunnable/litert_litert__blockwise_quantized")
    ),
}


def input_type(node: Node) -> int | None:
    return node.inputs[0].type if node.inputs and node.inputs[0] is not None else None


def float_runtime(model: Recorded) -> str | None:
    """What the model called for before it was quantized."""
    return minimum_runtime((n.op.name, n.as_float) for n in model.nodes if n.op.name not in ("QUANTIZE", "DEQUANTIZE"))


#: Why a model's metadata does not name the runtime that its operators call for.
RUNTIMES_EXPLAINED: dict[str, Callable[[Recorded], bool]] = {
    "quantizers after conversion keep the entry of the float model": lambda model: (
        bool(model.quantized) and model.runtime == float_runtime(model)
    ),
    "the compiler for an accelerator keeps the entry of the model that it compiled": lambda model: (
        not model.nodes and any(entry.name == "LiteRtStamp" for entry in model.model.root.metadata or [])
    ),
    "the converter of its time had no row for BATCH_MATMUL": lambda model: (
        model.runtime == minimum_runtime((n.op.name, n.version) for n in model.nodes if n.op.name != "BATCH_MATMUL")
    ),
    "a test file, altered after it was converted": lambda model: (
        model.name == "unrunnable/litert_testdata__segment_sum_invalid_buffer"
    ),
}


def test_the_version_of_every_node_is_what_the_converter_wrote_or_explained(recorded: list[Recorded]) -> None:
    used, wrong = set(), []
    for model in recorded:
        for node in model.nodes:
            if node.version == node.needed:
                continue
            why = next((why for why, holds in EXPLAINED.items() if holds(model, node)), None)
            used.add(why)
            if why is None:
                wrong.append(f"{model.name}: {node.op.name} needs version {node.needed}, has {node.version}")
    assert not wrong, "\n".join(wrong[:20])
    assert not part().whole or not EXPLAINED.keys() - used


def test_the_minimum_runtime_is_what_the_metadata_says_or_explained(recorded: list[Recorded]) -> None:
    used, wrong = set(), []
    for model in recorded:
        computed = minimum_runtime((node.op.name, node.version) for node in model.nodes)
        if model.runtime is None or model.runtime == (computed or ""):
            continue
        why = next((why for why, holds in RUNTIMES_EXPLAINED.items() if holds(model)), None)
        used.add(why)
        if why is None:
            wrong.append(f"{model.name}: calls for {computed}, its metadata says {model.runtime!r}")
    assert not wrong, "\n".join(wrong[:20])
    assert not part().whole or not RUNTIMES_EXPLAINED.keys() - used


@pytest.mark.skipif(not CONFORMANCE.with_name("facts").exists(), reason="LiteRT's list of operators lies outside the project")
def test_every_version_is_one_that_litert_registers() -> None:
    with (SHARED / "facts" / "builtin_ops.csv").open(encoding="utf-8") as file:
        rows = {row["name"]: (row["min_version"], row["max_version"]) for row in csv.DictReader(file)}
    registered = {op: range(int(first), int(last) + 1) for op, (first, last) in rows.items() if first}
    beyond = {
        (op.name, version)
        for op, rules in RULES.items()
        for version in (LOWEST.get(op, 1), *(rule.version for rule in rules))
        if version not in registered[op.name]
    }
    # INT16 input with INT8 weights, which LiteRT's rules know and its kernels do not.
    assert beyond == {("LSTM", 5), ("UNIDIRECTIONAL_SEQUENCE_LSTM", 5)}


@pytest.mark.parametrize("path", sorted((CONFORMANCE / "bad").glob("*.tflite")), ids=lambda path: path.stem)
def test_the_nodes_of_a_hostile_file_get_an_answer(path: Path) -> None:
    model = read(path.stem, path.read_bytes())
    assert model is None or all(node.needed >= LOWEST.get(node.op, 1) for node in model.nodes)
