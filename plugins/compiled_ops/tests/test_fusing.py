"""Nodes that compiled kernels compute with their own: a PAD before a DEPTHWISE_CONV_2D, and a layer before a clamp."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.budgets import examples

from oplet import Interpreter
from oplet.runtime.memory.remembered import forget_plans
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import (
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    MulOptions,
    PadOptions,
    SubOptions,
)
from oplet_compiled_ops.library import kernels
from oplet_testing import Spec, invoke
from oplet_testing.graphs import Graph, Op, graph_model

SLOWLY = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 6.5, -1.5], np.float32)


def answers(model: bytes, values: list[Any], threads: int = 1) -> tuple[list[str], list[Any], list[Any]]:
    """The nodes that run where kernels fuse nodes, the outputs, and those of the nodes one by one."""
    outputs, ran = [], []
    for alone in (False, True):
        interpreter = Interpreter(model_content=model, num_threads=threads, experimental_preserve_all_tensors=alone)
        invoke(interpreter, *values)
        outputs.append(invoke(interpreter))
        ran.append([node.op_name for segment in interpreter._subgraphs[0].segments for node in segment.nodes])
    return ran[0], *outputs


def depthwise_model(
    dtype: str,
    shape: tuple[int, int, int, int],
    paddings: list[list[int]],
    taps: tuple[int, int],
    multiplier: int = 1,
    weights: Any = None,
    **options: Any,
) -> bytes:
    """PAD, then DEPTHWISE_CONV_2D."""
    random = np.random.default_rng(0)
    padded = tuple(length + sum(pair) for length, pair in zip(shape, paddings))
    filters = padded[3] * multiplier
    quantized: dict[str, Any] = {} if dtype == "float32" else {"scale": 0.5, "zero_point": 3}
    output: dict[str, Any] = {} if dtype == "float32" else {"scale": 40.0, "zero_point": -5 if dtype == "int8" else 9}
    if dtype == "float32":
        bias: Any = random.standard_normal(filters).astype(np.float32)
    else:
        bias = Spec("int32", [filters], data=random.integers(-99, 99, filters).astype(np.int32), scale=0.125, zero_point=0)
    if weights is None:
        weights = values_of(dtype, (1, *taps, filters))
        if dtype != "float32":
            weights = Spec(dtype, weights.shape, data=weights, scale=0.25, zero_point=0 if dtype == "int8" else 7)
    tensors = {
        "x": Spec(dtype, shape, **quantized),
        "padded": Spec(dtype, padded, **quantized),
        "y": Spec(dtype, [1, 1, 1, 1], **output),
        "paddings": np.array(paddings, np.int32),
        "w": weights,
        "b": bias,
    }
    layer = DepthwiseConv2DOptions(depth_multiplier=multiplier, **{"stride_h": 1, "stride_w": 1, **options})
    ops = [Op("PAD", "x paddings", "padded", PadOptions()), Op("DEPTHWISE_CONV_2D", "padded w b", "y", layer)]
    return graph_model(Graph(tensors, "x", "y", ops))


def values_of(dtype: str, shape: Any, seed: int = 1) -> Any:
    random = np.random.default_rng(seed)
    if dtype == "float32":
        return random.standard_normal(shape).astype(np.float32)
    return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


@pytest.mark.sweep
@SLOWLY
@given(
    dtype=st.sampled_from(["float32", "int8", "uint8"]),
    channels=st.sampled_from([2, 8, 16, 24, 32]),
    size=st.tuples(st.integers(1, 3), st.integers(3, 9), st.integers(3, 9)),
    rows=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    columns=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    taps=st.sampled_from([(3, 3), (5, 5), (1, 3)]),
    stride=st.integers(1, 3),
    dilation=st.sampled_from([1, 1, 2]),
    multiplier=st.sampled_from([1, 1, 2]),
    padding=st.sampled_from([Padding.VALID, Padding.VALID, Padding.SAME]),
    activation=st.sampled_from([ActivationFunctionType.NONE, ActivationFunctionType.RELU6]),
    threads=st.sampled_from([1, 2]),
)
def test_a_border_that_is_never_written_gives_the_same_bits(
    dtype: str,
    channels: int,
    size: tuple[int, int, int],
    rows: tuple[int, int],
    columns: tuple[int, int],
    taps: tuple[int, int],
    stride: int,
    dilation: int,
    multiplier: int,
    padding: Padding,
    activation: ActivationFunctionType,
    threads: int,
) -> None:
    shape = (*size, channels)
    spans = [(tap - 1) * dilation + 1 for tap in taps]
    paddings = [[0, 0], list(rows), list(columns), [0, 0]]
    if any(length + sum(pair) < span for length, pair, span in zip(size[1:], (rows, columns), spans)):
        return
    model = depthwise_model(
        dtype, shape, paddings, taps, multiplier,
        padding=padding, stride_h=stride, stride_w=stride, dilation_h_factor=dilation, dilation_w_factor=dilation,
        fused_activation_function=activation,
    )  # fmt: skip
    _, together, alone = answers(model, [values_of(dtype, shape)], threads)
    np.testing.assert_array_equal(together[0], alone[0])


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("channels", [8, 32])
def test_a_border_is_absorbed(dtype: str, channels: int) -> None:
    model = depthwise_model(
        dtype, (1, 8, 8, channels), [[0, 0], [0, 1], [0, 1], [0, 0]], (3, 3), padding=Padding.VALID, stride_h=2, stride_w=2
    )
    ran, together, alone = answers(model, [values_of(dtype, (1, 8, 8, channels))])
    assert ran == ["DEPTHWISE_CONV_2D"]
    np.testing.assert_array_equal(together[0], alone[0])


@pytest.mark.parametrize(
    ("paddings", "weights"),
    [
        ([[0, 0], [1, 1], [1, 1], [0, 16]], None),
        ([[1, 0], [1, 1], [1, 1], [0, 0]], None),
        ([[0, 0], [3, 0], [0, 0], [0, 0]], None),
        ([[0, 0], [0, 4], [0, 0], [0, 0]], None),
        ([[0, 0], [1, 1], [1, 1], [0, 0]], np.where(np.arange(9 * 16) == 5, np.inf, 1.0).reshape(1, 3, 3, 16).astype(np.float32)),
    ],
    ids=["channels", "batches", "wider than a window before", "wider than a window after", "infinite weights"],
)
def test_other_borders_are_written(paddings: Any, weights: Any) -> None:
    """A border of zeros times an infinite weight is NaN."""
    model = depthwise_model("float32", (1, 6, 6, 16), paddings, (3, 3), weights=weights, padding=Padding.VALID)
    ran, together, alone = answers(model, [values_of("float32", (1, 6, 6, 16))])
    assert ran == ["PAD", "DEPTHWISE_CONV_2D"]
    np.testing.assert_array_equal(together[0], alone[0])
    assert np.isnan(together[0]).any() == (weights is not None)


LAYERS: dict[str, tuple[Any, Any, Any]] = {
    "ADD": (AddOptions, (1, 6, 6, 16), (1, 6, 6, 16)),
    "SUB": (SubOptions, (1, 6, 6, 16), (16,)),
    "MUL": (MulOptions, (1, 6, 6, 16), (1, 6, 6, 16)),
    "CONV_2D": (Conv2DOptions, (1, 6, 6, 16), (8, 3, 3, 16)),
    "DEPTHWISE_CONV_2D": (DepthwiseConv2DOptions, (1, 6, 6, 16), (1, 3, 3, 16)),
    "FULLY_CONNECTED": (FullyConnectedOptions, (6, 16), (8, 16)),
}


def clamped(layer: str, clamp: str, activation: ActivationFunctionType = ActivationFunctionType.NONE) -> bytes:
    kind, shape, other = LAYERS[layer]
    options = kind(fused_activation_function=activation)
    for name in ("stride_h", "stride_w", "depth_multiplier"):
        if hasattr(kind, name):
            setattr(options, name, 1)
    arrives = layer in ("ADD", "SUB", "MUL")
    weights: Any = Spec("float32", other) if arrives else values_of("float32", other)
    bias = values_of("float32", other[-1] if layer == "DEPTHWISE_CONV_2D" else other[0])
    tensors = {"x": Spec("float32", shape), "w": weights, "b": bias, "y": Spec("float32", [1]), "z": Spec("float32", [1])}
    ops = [Op(layer, "x w" if arrives else "x w b", "y", options), Op(clamp, "y", "z")]
    return graph_model(Graph(tensors, "x w" if arrives else "x", "z", ops))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("clamp", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_that_clamps_its_own_outputs_gives_the_same_numbers(layer: str, clamp: str, threads: int) -> None:
    """Zeros may differ in their sign, as those of activations and of clamps do in LiteRT."""
    _, shape, other = LAYERS[layer]
    random = np.random.default_rng(3)
    values = [values_of("float32", shape) * 3]
    if layer in ("ADD", "SUB", "MUL"):
        values[0] = random.choice(SPECIAL, shape)
        values.append(random.choice(SPECIAL, other))
    ran, together, alone = answers(clamped(layer, clamp), values, threads)
    assert ran == [clamp]
    np.testing.assert_array_equal(together[0], alone[0])


@pytest.mark.parametrize("layer", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_sums_that_are_not_finite_are_clamped_alike(layer: str) -> None:
    values = np.random.default_rng(3).choice(SPECIAL, LAYERS[layer][1])
    _, together, alone = answers(clamped(layer, "RELU"), [values])
    np.testing.assert_array_equal(together[0], alone[0])


@pytest.mark.parametrize("layer", LAYERS)
def test_what_a_fused_clamp_holds_is_freed_without_the_collector_of_cycles(layer: str) -> None:
    interpreter = Interpreter(model_content=clamped(layer, "RELU"), num_threads=1)
    interpreter.allocate_tensors()
    gc.collect()
    gc.disable()
    try:
        del interpreter
        forget_plans()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_layer_with_an_activation_runs_alone() -> None:
    ran, together, alone = answers(
        clamped("ADD", "RELU", ActivationFunctionType.RELU6), [values_of("float32", (1, 6, 6, 16))] * 2
    )
    assert ran == ["ADD", "RELU"]
    np.testing.assert_array_equal(together[0], alone[0])


def test_fused_nodes_answer_like_a_fresh_interpreter_after_a_resize() -> None:
    model = depthwise_model("float32", (1, 8, 8, 16), [[0, 0], [1, 1], [1, 1], [0, 0]], (3, 3), padding=Padding.VALID)
    resized = Interpreter(model_content=model)
    invoke(resized, values_of("float32", (1, 8, 8, 16)))
    for shape in ((2, 5, 7, 16), (1, 8, 8, 16)):
        values = values_of("float32", shape)
        [again] = invoke(resized, values, resize=True)
        [fresh] = invoke(Interpreter(model_content=model), values, resize=True)
        np.testing.assert_array_equal(again, fresh)
        assert resized.get_tensor_details()[1]["shape"].tolist() == [shape[0], shape[1] + 2, shape[2] + 2, 16]


@pytest.fixture
def no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are in no library."""

    def missing() -> Any:
        raise kernels.MissingKernelError("there is none")

    forget_plans()  # interpreters of equal bytes take over what others have bound
    monkeypatch.setenv("OPLET_PLANS", "off")  # or what others have stored
    monkeypatch.setattr(kernels, "library", missing)
    for kernel in list(kernels.known):
        for found in ("_entry", "_compiled", "_by_words"):
            monkeypatch.setattr(kernel, found, None)


@pytest.mark.usefixtures("no_machine_code")
def test_numpy_answers_for_nodes_that_would_be_fused_where_their_kernels_are_missing() -> None:
    cases = [
        (
            depthwise_model("int8", (1, 8, 8, 8), [[0, 0], [1, 1], [1, 1], [0, 0]], (3, 3), padding=Padding.VALID),
            values_of("int8", (1, 8, 8, 8)),
        ),
        (clamped("CONV_2D", "RELU"), values_of("float32", (1, 6, 6, 16))),
    ]
    for model, values in cases:
        interpreter = Interpreter(model_content=model)
        [found] = invoke(interpreter, values)
        reports = interpreter.explain()
        assert {report.distribution for report in reports} == {"oplet-builtin-ops"}
        assert any("it has no machine code: there is none" in report.why for report in reports)
        np.testing.assert_array_equal(found, *invoke(Interpreter(model_content=model, plugins=["oplet-builtin-ops"]), values))


def test_floats_with_integer_weights_keep_their_border() -> None:
    """Their maps are quantized with the border."""
    weights = Spec("int8", (1, 3, 3, 16), data=values_of("int8", (1, 3, 3, 16)), scale=0.25, zero_point=0)
    model = depthwise_model(
        "float32", (1, 6, 6, 16), [[0, 0], [1, 1], [1, 1], [0, 0]], (3, 3), weights=weights, padding=Padding.VALID
    )
    ran, together, alone = answers(model, [values_of("float32", (1, 6, 6, 16))])
    assert ran == ["PAD", "DEPTHWISE_CONV_2D"]
    np.testing.assert_array_equal(together[0], alone[0])
