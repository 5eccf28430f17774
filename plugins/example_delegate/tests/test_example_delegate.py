"""The example delegate: found by name, claims what it says, and gives the numbers that LiteRT gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budgets import examples

from oplet import NUMPY_BUFFER, BackendBuffer, BufferAttribute, Interpreter, IoType, ModelBuilder, load_delegate
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Conv2DOptions, ReducerOptions
from oplet_testing import DelegateContract, Spec, one_op_model, run_op

F32 = np.float32


def conv_then_mean(
    shape: tuple[int, ...], filters: tuple[int, ...], options: Conv2DOptions, axes: list[int], keep: bool, *, version: int = 1
) -> bytes:
    """CONV_2D, RELU, CONV_2D, MEAN."""
    random = np.random.default_rng(1)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", F32, shape)
    rows, columns = (
        -(-size // stride) if options.padding is Padding.SAME else -(-(size - taps + 1) // stride)
        for size, taps, stride in zip(shape[1:3], filters[1:3], (options.stride_h, options.stride_w))
    )
    between = [shape[0], rows, columns, filters[0]]
    first, active, second = (graph.add_tensor(n, F32, between) for n in ("first", "active", "second"))
    y = graph.add_tensor("y", F32, [1])
    one = graph.add_tensor("one", F32, filters, data=random.standard_normal(filters).astype(F32))
    again = (*filters[:3], filters[0])
    two = graph.add_tensor("two", F32, again, data=random.standard_normal(again).astype(F32))
    bias = graph.add_tensor("bias", F32, filters[:1], data=random.standard_normal(filters[:1]).astype(F32))
    axis = graph.add_tensor("axis", np.int32, [len(axes)], data=np.array(axes, np.int32))
    same = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    graph.add_operator("CONV_2D", [x, one, bias], [first], options, version=version)
    graph.add_operator("RELU", [first], [active])
    graph.add_operator("CONV_2D", [active, two, bias], [second], same)
    graph.add_operator("MEAN", [second, axis], [y], ReducerOptions(keep_dims=keep))
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


@settings(max_examples=examples(30), deadline=None)
@given(
    st.tuples(st.integers(1, 2), st.integers(3, 9), st.integers(3, 9), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    st.builds(
        Conv2DOptions,
        padding=st.sampled_from(Padding),
        stride_h=st.integers(1, 2),
        stride_w=st.integers(1, 2),
        fused_activation_function=st.sampled_from(
            [ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU6]
        ),
    ),
    st.sampled_from([[1, 2], [3], [-1, 0], [1]]),
    st.booleans(),
)
def test_the_answer_with_the_delegate_is_litert_s(
    shape: tuple[int, ...], filters: tuple[int, ...], options: Conv2DOptions, axes: list[int], keep: bool
) -> None:
    content = conv_then_mean(shape, (*filters, shape[3]), options, axes, keep)
    x = np.random.default_rng(0).standard_normal(shape).astype(F32)
    with_delegate = run_op(content, x, experimental_delegates=[load_delegate("example")])[0]
    np.testing.assert_allclose(with_delegate, run_op(content, x, interpreter=LiteRT)[0], rtol=1e-4, atol=1e-4)


def partitions(content: bytes, options: dict[str, Any] | None = None) -> tuple[list[str], dict[int, str]]:
    delegate: Any = load_delegate("example", options)
    interpreter = Interpreter(model_content=content, experimental_delegates=[delegate])
    return [report.op for report in interpreter.explain()], interpreter.delegation_reports()[0].unsupported


def test_it_claims_convolutions_and_means_and_says_why_not_the_rest() -> None:
    plain = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    plan, refused = partitions(conv_then_mean((1, 4, 4, 2), (2, 3, 3, 2), plain, [1, 2], True))
    assert plan == ["example", "RELU", "example"]
    assert refused == {1: "RELU is none of its operators"}


def test_it_leaves_a_version_that_it_does_not_know_alone() -> None:
    dilated = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    plan, refused = partitions(conv_then_mean((1, 4, 4, 2), (2, 3, 3, 2), dilated, [1, 2], True, version=2))
    assert plan == ["CONV_2D", "RELU", "example"]
    assert refused[0] == "CONV_2D is of version 2, it knows up to 1"


def test_options_limit_the_partitions() -> None:
    plain = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    content = conv_then_mean((1, 4, 4, 2), (2, 3, 3, 2), plain, [1, 2], True)
    assert partitions(content, {"min_nodes": 2})[0] == ["CONV_2D", "RELU", "example"]
    assert partitions(content, {"max_partitions": 1})[0] == ["CONV_2D", "RELU", "example"]


@pytest.mark.parametrize(("key", "value"), [("min_nodes", "many"), ("min_nodes", -1), ("nodes", 1)])
def test_an_option_that_makes_no_sense_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"Failed to load delegate from example: .*'{key}={value}' is none of its options"):
        load_delegate("example", {key: value})


IMAGE, FILTER, BIAS = Spec(F32, [1, 4, 4, 2]), np.ones((3, 2, 2, 2), F32), np.ones(3, F32)
AXES = np.array([1, 2], np.int32)


@pytest.mark.parametrize(
    ("op", "inputs", "options", "why"),
    [
        ("CONV_2D", [IMAGE, FILTER, BIAS], Conv2DOptions(stride_h=1, stride_w=1, dilation_h_factor=2), "it does not dilate"),
        ("CONV_2D", [IMAGE, FILTER, BIAS], Conv2DOptions(stride_h=1, stride_w=1, dilation_w_factor=3), "here by 1 and 3"),
        (
            "CONV_2D",
            [IMAGE, FILTER, BIAS],
            Conv2DOptions(stride_h=1, stride_w=1, fused_activation_function=ActivationFunctionType.TANH),
            "it has no activation",
        ),
        ("CONV_2D", [IMAGE, FILTER, None], Conv2DOptions(stride_h=1, stride_w=1), "an input, a filter and a bias"),
        ("CONV_2D", [IMAGE, Spec(F32, FILTER.shape), BIAS], Conv2DOptions(stride_h=1, stride_w=1), "a constant 4-D filter"),
        ("CONV_2D", [IMAGE, np.ones((3, 2, 2, 1), F32), BIAS], Conv2DOptions(stride_h=1, stride_w=1), "does not fit the input"),
        ("CONV_2D", [IMAGE, FILTER.astype(np.int8), BIAS], Conv2DOptions(stride_h=1, stride_w=1), "its filter is INT8"),
        ("MEAN", [IMAGE, Spec(np.int32, [2])], ReducerOptions(), "its axes are not constant"),
        ("MEAN", [Spec(F32, [0, 2]), AXES[:1]], ReducerOptions(), "no mean of nothing"),
        ("MEAN", [Spec(np.int32, [2, 2]), AXES[:1]], ReducerOptions(), "it works on FLOAT32, not INT32"),
        ("NEG", [IMAGE], None, "NEG is none of its operators"),
    ],
)
def test_what_it_does_not_compute_rightly_it_leaves_alone(op: str, inputs: Any, options: Any, why: str) -> None:
    """Asked directly: most of these would not get past the built-in kernels."""
    content = one_op_model(op, inputs, [Spec(inputs[0].type, [1])], options)
    [node] = Interpreter(model_content=content)._subgraphs[0].nodes
    assert why in str(load_delegate("example").is_node_supported(None, node))


class TestContract(DelegateContract):
    delegate = "example"
    model = conv_then_mean((1, 4, 4, 2), (2, 3, 3, 2), Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1), [1, 2], True)
    inputs = (np.linspace(-1, 1, 32, dtype=F32).reshape(1, 4, 4, 2),)


def test_a_model_that_it_runs_as_a_whole_runs_asynchronously() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    image, means = graph.add_tensor("image", F32, (1, 8, 8, 4)), graph.add_tensor("means", F32, (1, 4))
    axes = graph.add_tensor("axes", np.int32, [2], data=np.array([1, 2], np.int32))
    graph.add_operator("MEAN", [image, axes], [means], ReducerOptions(keep_dims=False))
    graph.set_inputs(image)
    graph.set_outputs(means)
    interpreter = Interpreter(model_content=builder.to_bytes(), experimental_delegates=[load_delegate("example")])
    runner = interpreter.get_async_signature_runner()
    runner.prepare_backends()
    x, y = np.random.default_rng(2).standard_normal((1, 8, 8, 4)).astype(F32), np.zeros((1, 4), F32)
    with runner.create_task() as task:
        for name, io, array in (("image", IoType.INPUT, x), ("means", IoType.OUTPUT, y)):
            buffer = runner.register_buffer(io, BackendBuffer(array), {BufferAttribute.RESOURCE_TYPE_NAME: NUMPY_BUFFER})
            task.set_buffer(name, buffer)
        runner.invoke_async(task)
        runner.wait(task)
    np.testing.assert_allclose(y, x.mean((1, 2)), rtol=1e-6)
