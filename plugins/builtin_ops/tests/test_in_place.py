"""Kernels that offer to write over an input give the same answer there, one by one and in graphs of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.budgets import examples

from oplet import Interpreter
from oplet.schema.options import ReshapeOptions
from oplet_testing import Graph, Op, Spec, graph_model, one_op_model
from oplet_testing.harness.graph_access import write_over
from oplet_testing.harness.runs import answers, run

#: Larger than a block, and of a size that no block divides.
SHAPE = (1, 131, 7, 40)
UNARY = [
    "ABS",
    "CEIL",
    "COS",
    "EXP",
    "FLOOR",
    "HARD_SWISH",
    "LEAKY_RELU",
    "LOGISTIC",
    "NEG",
    "RELU",
    "RELU6",
    "ROUND",
    "SIGN",
    "SIN",
    "SOFTMAX",
    "SQUARE",
    "TANH",
]
QUANTIZED = ["HARD_SWISH", "LEAKY_RELU", "RELU", "RELU6", "TANH"]
VALUES = np.random.default_rng(5).normal(0, 3, SHAPE).astype(np.float32)


def check(model: bytes, values: list[NDArray[Any]], offers: int, **arguments: Any) -> None:
    wanted = run(Interpreter(model_content=model), values)
    for number in range(offers):
        interpreter = Interpreter(model_content=model, plugins=["builtin_ops"], **arguments)
        assert write_over(interpreter, values, number)
        interpreter.invoke()
        assert answers(interpreter)[0].tobytes() == wanted[0].tobytes()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("op", UNARY)
def test_ops_of_one_float_input(op: str, threads: int) -> None:
    spec = Spec("float32", SHAPE)
    check(one_op_model(op, [spec], [spec]), [VALUES], 1, num_threads=threads)


@pytest.mark.parametrize("op", QUANTIZED)
def test_ops_of_one_quantized_input(op: str) -> None:
    source, output = Spec("int8", SHAPE, scale=0.05, zero_point=3), Spec("int8", SHAPE, scale=1 / 128, zero_point=0)
    check(one_op_model(op, [source], [output]), [(VALUES * 20).astype(np.int8)], 1)


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE"])
@pytest.mark.parametrize("other", [SHAPE, (40,), (1, 131, 7, 1)])
@pytest.mark.parametrize("threads", [1, 2])
def test_ops_of_two_float_inputs(op: str, other: tuple[int, ...], threads: int) -> None:
    specs = [Spec("float32", SHAPE), Spec("float32", other)]
    values = [VALUES, VALUES.reshape(-1)[: np.prod(other)].reshape(other) + 20]
    check(one_op_model(op, specs, specs[:1]), values, 2 if other == SHAPE else 1, num_threads=threads)


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize("type", ["int8", "int16"])
def test_ops_of_two_quantized_inputs(op: str, type: str) -> None:
    spec = Spec(type, SHAPE, scale=0.03, zero_point=0)
    check(one_op_model(op, [spec, spec], [spec]), [(VALUES * 20).astype(type), (VALUES[..., ::-1] * 20).astype(type)], 2)


@pytest.mark.parametrize("slope", [0.3, 1.7], ids=["at most one", "above one"])
@pytest.mark.parametrize("shape", [(1, 1, 40), SHAPE[1:], (1, 1, 1)], ids=["by channel", "by value", "one"])
@pytest.mark.parametrize("threads", [1, 2])
def test_prelu(slope: float, shape: tuple[int, ...], threads: int) -> None:
    spec = Spec("float32", SHAPE)
    model = one_op_model("PRELU", [spec, np.full(shape, slope, np.float32)], [spec])
    check(model, [VALUES], 1, num_threads=threads)


def test_reshape_does_nothing_then() -> None:
    model = one_op_model(
        "RESHAPE",
        [Spec("float32", SHAPE)],
        [Spec("float32", (131, 280))],
        ReshapeOptions(new_shape=np.array([131, 280], np.int32)),
    )
    check(model, [VALUES], 1)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Elementwise ops on tensors of two shapes, each of which may be read by many later ones, and any of which may be an output."""
    tensors, ops = {"t0": Spec("float32", [6]), "t1": Spec("float32", [2, 3]), "t2": Spec("float32", [2, 3])}, []
    tensors["flat"], tensors["square"] = np.array([6], np.int32), np.array([2, 3], np.int32)
    for number in range(3, draw(st.integers(4, 16))):
        name, old = f"t{number}", st.sampled_from([name for name in tensors if name.startswith("t")])
        op = draw(st.sampled_from(["ADD", "MUL", "SUB", "TANH", "RELU", "HARD_SWISH", "SOFTMAX", "RESHAPE", "RESHAPE"]))
        one = draw(old)
        shape, inputs = tensors[one].shape, [one]
        if op == "RESHAPE":
            shape, other = ([2, 3], "square") if draw(st.booleans()) else ([6], "flat")
            inputs.append(other)
        elif op in ("ADD", "MUL", "SUB"):
            inputs.append(draw(old.filter(lambda name, shape=shape: tensors[name].shape == shape)))
        tensors[name] = Spec("float32", shape)
        ops.append(Op(op, " ".join(inputs), name))
    made = [op.outputs for op in ops]
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, unique=True))
    return Graph(tensors, "t0 t1 t2", " ".join(outputs), ops)


@settings(deadline=None, max_examples=examples(60))
@given(graphs(), st.integers(0, 2**32 - 1))
def test_a_graph_answers_as_one_whose_tensors_all_have_a_place_of_their_own(graph: Graph, seed: int) -> None:
    model = graph_model(graph)
    random = np.random.default_rng(seed)
    values = [random.normal(0, 1, shape).astype(np.float32) for shape in ([6], [2, 3], [2, 3])]
    wanted = run(Interpreter(model_content=model, experimental_preserve_all_tensors=True), values)
    interpreter = Interpreter(model_content=model)
    for _ in range(2):
        got = run(interpreter, values)
        assert [x.tobytes() for x in got] == [x.tobytes() for x in wanted]
