"""Nodes that multiply float activations with integer weights, each fed LiteRT's values, equal one of LiteRT's ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.differential.harness import LiteRT
from tests.kinds import part
from tests.litert.nodewise import departures, hybrid
from tests.recorded_cases import ALL_GROUPS, Case, chosen, here

from oplet import Model, ModelBuilder, TensorType
from oplet.schema.enums import Padding
from oplet.schema.options import Conv2DOptions, DepthwiseConv2DOptions, FullyConnectedOptions

Array = np.ndarray[Any, Any]
#: What the order of a float's sums may change, relative to the largest value.
ORDER = 1e-6
#: The groups of recordings that have dynamic-range models.
GROUPS = (
    "conv",
    "depthwiseconv",
    "fully_connected",
    "keras",
    "lstm",
    "batchmatmul",
    "conv2d_transpose",
    "transpose_conv",
    "litert",
)


def convolutions(kind: TensorType, seed: int) -> bytes:
    """A net of convolutions of all kinds, with weights of a scale for each channel."""
    random = np.random.default_rng(seed)
    builder = ModelBuilder("convolutions")
    graph = builder.add_subgraph()
    limit = 128 if kind == TensorType.INT8 else 8
    x = graph.add_tensor("x", TensorType.FLOAT32, (2, 12, 13, 3))
    graph.set_inputs(x)
    shape = [2, 12, 13, 3]

    def add(op: str, size: int, channels: int, options: Any, weights_type: TensorType = kind) -> None:
        nonlocal x, shape
        depthwise = op == "DEPTHWISE_CONV_2D"
        filters = (1, size, size, channels) if depthwise else (channels, size, size, shape[3])
        most = limit if weights_type == kind else 128
        values = random.integers(1 - most, most, filters).astype(np.int8)
        scales = random.uniform(0.02, 0.1, channels) / most
        weights = graph.add_tensor(
            f"{op} weights", weights_type, filters, data=values, scale=scales, quantized_dimension=3 if depthwise else 0
        )
        bias = graph.add_tensor("bias", TensorType.FLOAT32, (channels,), data=random.normal(0, 1, channels).astype(np.float32))
        shape = [*shape[:3], channels]
        y = graph.add_tensor(f"{op} output", TensorType.FLOAT32, shape)
        graph.add_operator(op, [x, weights, bias], [y], options)
        x = y

    plain = Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1)
    add("CONV_2D", 3, 16, plain)
    for _ in range(2):
        options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1, depth_multiplier=1)
        add("DEPTHWISE_CONV_2D", 3, 16, options, TensorType.INT8)
        add("CONV_2D", 1, 16, plain)
    flat = int(np.prod(shape[1:]))
    values = random.integers(1 - limit, limit, (10, flat)).astype(np.int8)
    weights = graph.add_tensor("weights", kind, (10, flat), data=values, scale=random.uniform(0.001, 0.01, 10))
    y = graph.add_tensor("y", TensorType.FLOAT32, (2, 10))
    graph.add_operator(
        "FULLY_CONNECTED", [x, weights], [y], FullyConnectedOptions(asymmetric_quantize_inputs=kind == TensorType.INT8)
    )
    graph.set_outputs(y)
    return builder.build().to_bytes()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [TensorType.INT8, TensorType.INT4], ids=lambda kind: kind.name)
def test_each_layer_of_a_net_of_convolutions_equals_one_of_litert(
    litert: LiteRT, engine: list[str], kind: TensorType, seed: int
) -> None:
    random = np.random.default_rng(seed)
    # Values of few digits make many that lie half way between two steps.
    feeds = [np.round(random.normal(0.3, 1, (2, 12, 13, 3)) * 16).astype(np.float32) / 16]
    verdicts = list(departures(convolutions(kind, seed), feeds, litert, plugins=engine))
    assert len(verdicts) == 6
    assert not [(v.node, v.op, v.distances, v.refused) for v in verdicts if not v.distances or v.distance > ORDER]


def hybrid_cases() -> Iterator[tuple[Case, bytes, list[Array]]]:
    """The cases whose first subgraph has hybrid nodes: the case, its model and what to feed its inputs."""
    for case in chosen(*(group for group in ALL_GROUPS if group.stem.startswith(GROUPS))):
        if not case.runs:
            continue
        data = case.model()
        root = Model.from_bytes(data).root
        graph = root.subgraphs[0]
        if not graph.operators or not any(hybrid(Model(root, memoryview(data)), n) for n in range(len(graph.operators))):
            continue
        step = case.described["steps"][0]
        arrays = case.arrays()
        feeds = {item["name"]: arrays[item["key"]] for item in step["inputs"]}
        places = {graph.tensors[index].name: index for index in graph.inputs.tolist()}
        for signature in root.signature_defs or ():
            if step["signature"] == signature.signature_key and not signature.subgraph_index:
                places = {item.name: item.tensor_index for item in signature.inputs}
        if set(places) == set(feeds) and set(places.values()) == set(graph.inputs.tolist()):
            by_index = {places[name]: value for name, value in feeds.items()}
            yield case, data, [by_index[index] for index in graph.inputs.tolist()]


@here
@pytest.mark.sweep(cases=True)
def test_each_hybrid_node_of_recorded_models_equals_one_of_litert(litert: LiteRT, engine: list[str]) -> None:
    nodes, wrong, left = 0, [], []
    for case, data, feeds in hybrid_cases():
        try:
            for verdict in departures(data, feeds, litert, plugins=engine):
                nodes += 1
                if verdict.distance > ORDER:
                    wrong.append((case.id, verdict.node, verdict.op, verdict.distances, verdict.refused))
        except RuntimeError as error:  # LiteRT does not run the model with everything as an output
            left.append((case.id, str(error)))
    assert nodes >= part().least(50)
    assert not wrong
    assert not left
