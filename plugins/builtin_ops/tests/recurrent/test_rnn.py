"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and the two BIDIRECTIONAL_SEQUENCE ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import ModelBuilder, TensorType
from oplet.errors import PrepareError
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import (
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    RNNOptions,
    SequenceRNNOptions,
)
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

BATCHES, STEPS, DEPTH = 2, 4, 5
KINDS = ["float", "hybrid", "hybrid uint8"]
TANH, RELU6, NONE = ActivationFunctionType.TANH, ActivationFunctionType.RELU6, ActivationFunctionType.NONE


def cell(drawn: Any, units: int) -> list[Any]:
    state = Spec("float32", (BATCHES, units), variable=True)
    return [drawn.weights(units, DEPTH), drawn.weights(units, units), drawn.bias(units), state]


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("activation", [TANH, RELU6, NONE])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_agree_with_litert(agree, draw, kind, activation, asymmetric):
    drawn, shape = draw(kind), (BATCHES, DEPTH)
    options = RNNOptions(fused_activation_function=activation, asymmetric_quantize_inputs=asymmetric)
    model = one_op_model("RNN", [Spec("float32", shape), *cell(drawn, 6)], [Spec("float32", (BATCHES, 6))], options, version=3)
    agree(model, drawn.feeds(shape), 1e-3 if kind != "float" else 1e-5)


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_sequences_agree_with_litert(agree, draw, kind, time_major):
    drawn, shape = draw(kind, 1), (STEPS, BATCHES, DEPTH) if time_major else (BATCHES, STEPS, DEPTH)
    options = SequenceRNNOptions(fused_activation_function=TANH, time_major=time_major)
    inputs, outputs = [Spec("float32", shape), *cell(drawn, 6)], [Spec("float32", (*shape[:2], 6))]
    model = one_op_model("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, outputs, options, version=3)
    agree(model, drawn.feeds(shape), 1e-3 if kind != "float" else 1e-5)


def test_a_state_that_a_constant_gives_its_first_value_goes_on_from_there(agree):
    # Converters write float16 models so: the state of the cell is the output of a DEQUANTIZE.
    random = np.random.default_rng(7)
    builder = ModelBuilder("state")
    graph = builder.add_subgraph()
    start = graph.add_tensor("start", TensorType.FLOAT16, [1, 3], data=np.array([[0.5, -1, 2]], np.float16))
    state = graph.add_tensor("state", TensorType.FLOAT32, [1, 3], is_variable=True)
    source, result = (
        graph.add_tensor("source", TensorType.FLOAT32, [1, 2]),
        graph.add_tensor("result", TensorType.FLOAT32, [1, 3]),
    )
    weights = [random.normal(0, 0.5, shape).astype(np.float32) for shape in ((3, 2), (3, 3), (3,))]
    constants = [graph.add_tensor(f"w{i}", TensorType.FLOAT32, w.shape, data=w) for i, w in enumerate(weights)]
    graph.set_inputs(source)
    graph.set_outputs(result)
    graph.add_operator("DEQUANTIZE", [start], [state], version=3)
    graph.add_operator("RNN", [source, *constants, state], [result], RNNOptions(fused_activation_function=TANH))
    agree(builder.to_bytes(), [[random.normal(size=(1, 2)).astype(np.float32)] for _ in range(3)])


def outputs_of(shape: Any, sizes: tuple[int, int], merged: bool) -> list[Spec]:
    return [Spec("float32", (*shape[:2], size)) for size in ((sum(sizes),) if merged else sizes)]


@pytest.mark.parametrize("auxiliary", ["none", "input", "weights"])
@pytest.mark.parametrize("time_major", [False, True])
# LiteRT dies on hybrid cells with merged outputs of several batches, unless it quantizes with a zero point.
@pytest.mark.parametrize(("kind", "merged"), [("float", False), ("float", True), ("hybrid", False)])
def test_both_directions_agree_with_litert(agree, draw, kind, merged, time_major, auxiliary):
    drawn, shape = draw(kind, 2), (STEPS, BATCHES, DEPTH) if time_major else (BATCHES, STEPS, DEPTH)
    inputs = [Spec("float32", shape), *cell(drawn, 6), *cell(drawn, 3)]
    inputs += [None if auxiliary == "none" else Spec("float32", shape)]
    inputs += [drawn.weights(units, DEPTH) if auxiliary == "weights" else None for units in (6, 3)]
    options = BidirectionalSequenceRNNOptions(fused_activation_function=TANH, time_major=time_major, merge_outputs=merged)
    model = one_op_model("BIDIRECTIONAL_SEQUENCE_RNN", inputs, outputs_of(shape, (6, 3), merged), options, version=3)
    steps = [feeds * (1 if auxiliary == "none" else 2) for feeds in drawn.feeds(shape)]
    agree(model, steps, 1e-3 if kind != "float" else 1e-5)


@pytest.mark.parametrize("auxiliary", ["none", "input", "weights"])
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_both_directions_of_an_lstm_agree_with_litert(agree, draw, kind, merged, auxiliary):
    drawn, shape, cells = draw(kind, 3), (STEPS, BATCHES, DEPTH), 6

    def direction() -> list[Any]:
        gates = [drawn.weights(cells, DEPTH) for _ in range(4)] + [drawn.weights(cells, cells) for _ in range(4)]
        return [*gates, *[drawn.side(cells) for _ in range(3)], *[drawn.bias(cells) for _ in range(4)], None, None]

    inputs = [Spec("float32", shape), *direction(), *direction()]
    inputs += [Spec("float32", (BATCHES, cells), variable=True) for _ in range(4)]
    inputs += [None if auxiliary == "none" else Spec("float32", shape)]
    inputs += [drawn.weights(cells, DEPTH) if auxiliary == "weights" else None for _ in range(8)]
    options = BidirectionalSequenceLSTMOptions(fused_activation_function=TANH, time_major=True, merge_outputs=merged)
    model = one_op_model("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs_of(shape, (cells, cells), merged), options, version=3)
    steps = [feeds * (1 if auxiliary == "none" else 2) for feeds in drawn.feeds(shape)]
    agree(model, steps, 1e-3 if kind != "float" else 1e-5)


@pytest.mark.parametrize(
    ("position", "replacement", "message"),
    [
        (1, np.zeros((6, 4), np.float32), r"input weights .* \[6, 5\]"),
        (2, np.zeros((6, 6), np.int8), "recurrent weights .* FLOAT32"),
        (3, None, "input 3 is left out"),
        (4, Spec("float32", (BATCHES, 6)), "hidden state .* variable"),
    ],
)
def test_tensors_that_do_not_fit_are_named(draw, position, replacement, message):
    inputs = [Spec("float32", (BATCHES, DEPTH)), *cell(draw("float"), 6)]
    inputs[position] = replacement
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model("RNN", inputs, [Spec("float32", (BATCHES, 6))], RNNOptions()), np.zeros((BATCHES, DEPTH), np.float32))
