"""odml.rms_norm and odml.group_norm against the formulas in double precision; tests/composites has PyTorch's own answers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.budgets import examples

from oplet import Interpreter
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing import OpContract, run_op
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

Array = NDArray[Any]
random = np.random.default_rng(7)
LAYER = {"num_groups": 1, "channel_axis": 1}
TENSOR = {"TENSOR_DATA": [3], "TENSOR_SHAPE": [1], "TENSOR_TYPE": 4}


def model(
    name: str, attributes: Any, *operands: Any, free: bool = False, inner: tuple[Op, ...] = (), **constants: Array
) -> bytes:
    """One composite; its decomposition, a copy of x times 0, gives itself away."""
    names = ["x", "w", "b", "more"][: len(operands)]
    tensors: dict[str, Any] = {
        each: Spec(value.dtype, list(value.shape), signature=[-1] * value.ndim if free and each == "x" else None)
        for each, value in zip(names, operands)
    }
    reads = " ".join(names)
    options = StableHLOCompositeOptions(
        name=name,
        decomposition_subgraph_index=1,
        composite_attributes=np.frombuffer(bytes(flexbuffers.Dumps(attributes)), np.uint8),
    )
    main = Graph({**tensors, "y": tensors["x"]}, reads, "y", [Op("STABLEHLO_COMPOSITE", reads, "y", options)])
    ops = inner or (Op("SUB", "x x", "y"),)
    return graph_model(main, Graph({**tensors, **constants, "y": tensors["x"]}, reads, "y", ops))


def rms(x: Array, weight: Array, epsilon: float) -> Array:
    x = x.astype(np.float64)
    return np.asarray(x / np.sqrt(np.square(x).mean(-1, keepdims=True) + epsilon) * weight)


def layer(x: Array, weight: Array, bias: Array, epsilon: float) -> Array:
    x, axes = x.astype(np.float64), tuple(range(x.ndim - weight.ndim, x.ndim))
    return np.asarray((x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon) * weight + bias)


def groups_of(x: Array, weight: Array, bias: Array, epsilon: float, groups: int) -> Array:
    split = x.astype(np.float64).reshape(*x.shape[:3], groups, -1)
    mean, variance = split.mean((1, 2, 4), keepdims=True), split.var((1, 2, 4), keepdims=True)
    return np.asarray(((split - mean) / np.sqrt(variance + epsilon)).reshape(x.shape) * weight + bias)


def normal(*shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


def answer(content: bytes, *operands: Array) -> Array:
    [found] = run_op(content, *operands)
    return np.asarray(found)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(1, 5), max_size=3), st.integers(1, 70), st.sampled_from([1e-6, 1e-3, 2.0]), st.integers(0, 2**32 - 1))
def test_rows_of_any_number_and_length_are_normalized(outer: list[int], size: int, epsilon: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((*outer, size), (size,), (size,)))
    x *= np.float32(rng.choice([0.01, 1, 1000]))
    found = answer(model("odml.rms_norm", {"epsilon": epsilon}, x, w), x, w)
    np.testing.assert_allclose(found, rms(x, w, epsilon), rtol=2e-5, atol=2e-5)
    found = answer(model("odml.group_norm", {"epsilon": epsilon, "sub_type": 1}, x, w, b), x, w, b)
    if size > 1:
        np.testing.assert_allclose(found, layer(x, w, b, epsilon), rtol=1e-4, atol=1e-4)


def test_many_rows_are_normalized_block_by_block() -> None:
    x, w = normal(3, 100, 1000), normal(1000)
    np.testing.assert_allclose(
        answer(model("odml.rms_norm", {"epsilon": 1e-6}, x, w), x, w), rms(x, w, 1e-6), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("groups", [1, 3, 6])
@pytest.mark.parametrize("key", ["reduction_axes", "_TENSOR_V1_reduction_axes"])
def test_groups_of_channels_are_normalized(groups: int, key: str) -> None:
    x, w, b = normal(2, 40, 50, 6) + 9, normal(6), normal(6)
    attributes = {"num_groups": groups, "epsilon": 1e-5, "channel_axis": 3, key: TENSOR if key[0] == "_" else [3]}
    found = answer(model("odml.group_norm", attributes, x, w, b), x, w, b)
    np.testing.assert_allclose(found, groups_of(x, w, b, 1e-5, groups), rtol=2e-5, atol=2e-5)


X, W = normal(2, 3, 4), normal(4)


@pytest.mark.parametrize(
    ("name", "attributes", "operands", "words"),
    [
        ("rms_norm", {}, (X, W), "the attribute epsilon is None"),
        ("rms_norm", {"epsilon": "much"}, (X, W), "the attribute epsilon is 'much'"),
        ("rms_norm", {"epsilon": -1.0}, (X, W), "the attribute epsilon is -1.0"),
        ("rms_norm", {"epsilon": 1e-6, "axis": 1}, (X, W), "the attribute axis is not known"),
        ("rms_norm", {"epsilon": 1e-6}, (X, normal(3)), "has not one weight for each value of a row"),
        ("rms_norm", {"epsilon": 1e-6}, (X, W, W), "it takes 2 inputs and gives one output; this node reads 3"),
        ("rms_norm", {"epsilon": 1e-6}, (X.astype(np.float16), W.astype(np.float16)), "is of type FLOAT16"),
        ("group_norm", {"epsilon": 1e-6}, (X, W, W), "the attributes {} are none that litert-torch writes"),
        ("group_norm", {"epsilon": 1e-6, "num_groups": 2, "channel_axis": 1}, (X, W, W), "are none that litert-torch writes"),
        ("group_norm", {"epsilon": 1e-6, "sub_type": 2}, (X, W, W), "are none that litert-torch writes"),
        ("group_norm", {"epsilon": 1e-6, **LAYER}, (X, normal(3), normal(3)), "has not the last dimensions of"),
        ("group_norm", {"epsilon": 1e-6, **LAYER}, (X, W, normal(2, 4)), "are not of one shape"),
        ("group_norm", {"epsilon": 1e-6, **LAYER}, (normal(2, 4, 4), W, W), "and either may be meant"),
        (
            "group_norm",
            {"epsilon": 1e-6, "num_groups": 3, "channel_axis": 3, "reduction_axes": [3]},
            (normal(1, 2, 2, 4), W, W),
            "and 3 groups do not fit",
        ),
    ],
)
def test_what_a_kernel_does_not_know_its_decomposition_computes(
    name: str, attributes: Any, operands: tuple[Array, ...], words: str
) -> None:
    content = model(f"odml.{name}", attributes, *operands)
    interpreter = Interpreter(model_content=content)
    assert not answer(content, *operands).any()
    interpreter.allocate_tensors()
    (report,) = [report for report in interpreter.explain() if report.composite]
    assert words in report.why


def test_a_factor_that_only_the_decomposition_has_is_not_forgotten() -> None:
    x, w = normal(2, 4), np.ones(4, np.float32)
    two = {"two": np.array(2, np.float32)}
    times_two = model("odml.rms_norm", {"epsilon": 1e-6}, x, w, inner=(Op("MUL", "x two", "y"),), **two)
    np.testing.assert_array_equal(answer(times_two, x, w), 2 * x)


class TestRmsNormContract(OpContract):
    model = model("odml.rms_norm", {"epsilon": 1e-6}, X, W, free=True)
    inputs: ClassVar[list[Any]] = [X, W]
    resized: ClassVar[list[Any]] = [normal(5, 1, 4), W]
    empty: ClassVar[list[Any]] = [np.zeros((0, 3, 4), np.float32), W]


class TestLayerNormContract(OpContract):
    model = model("odml.group_norm", {"epsilon": 1e-6, **LAYER}, X, W, W, free=True)
    inputs: ClassVar[list[Any]] = [X, W, W]
    resized: ClassVar[list[Any]] = [normal(5, 1, 4), W, W]
    empty: ClassVar[list[Any]] = [np.zeros((0, 3, 4), np.float32), W, W]


class TestGroupNormContract(OpContract):
    model = model(
        "odml.group_norm",
        {"epsilon": 1e-6, "num_groups": 2, "channel_axis": 3, "reduction_axes": [3]},
        *(normal(2, 3, 3, 4), W, W),
        free=True,
    )
    inputs: ClassVar[list[Any]] = [normal(2, 3, 3, 4), W, W]
    resized: ClassVar[list[Any]] = [normal(1, 2, 5, 4), W, W]
    empty: ClassVar[list[Any]] = [np.zeros((0, 3, 3, 4), np.float32), W, W]
