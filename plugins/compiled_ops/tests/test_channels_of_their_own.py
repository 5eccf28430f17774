"""Each channel of an integer layer has bounds of its own: dead filters, extreme scales and large sums keep no layer from its kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from tests.budgets import examples

from oplet import Interpreter
from oplet.kernels.requantization import Requantization, Rounding
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    TransposeConvOptions,
)
from oplet_compiled_ops.convolution import output_stage
from oplet_compiled_ops.convolution.thresholds import middle_thresholds
from oplet_compiled_ops.library.levels import has_byte_products
from oplet_testing import Spec, invoke, one_op_model
from oplet_testing.litert import litert_interpreter

SLOWLY = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
CLAMPS = [ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU6]
OPS = ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "grouped", "TRANSPOSE_CONV"]
#: What a channel may be.
KINDS = [
    "usual",
    "zeros",
    "zeros with a bias",
    "tiny",
    "tiny with a bias",
    "flushed",
    "large",
    "power of two",
    "fine",
    "no scale",
]
#: The largest bias of a channel whose sums are not a constant: float32 sums are exact together with it.
BIAS = 1 << 22


def channel(kind: str, weights: Any, random: np.random.Generator) -> tuple[float, int]:
    """Return a channel's factor from sums to outputs and its bias, and write its weights, all of them int8."""
    exponent = {"tiny": 27.0, "tiny with a bias": 30.0, "flushed": 36.0, "large": -1.0, "fine": 16.0}.get(kind, 9.0)
    factor = float(2.0 ** -(exponent + random.uniform(0, 3)))
    bias = int(random.integers(-3000, 3000))
    if kind.startswith("zeros"):
        weights[...] = 0
        bias, factor = (1 << 30 if kind != "zeros" else 0), float(2.0 ** -random.uniform(8, 31))
    elif kind == "tiny with a bias":
        bias = int(random.integers(-BIAS, BIAS))
    elif kind == "power of two":
        factor = float(2.0 ** -random.integers(1, 20))
    elif kind == "fine":  # steps that sums of small weights reach all the same
        bias = int(random.integers(-BIAS, BIAS))
    elif kind == "no scale":
        factor = 0.0
    return factor, bias


def layer(
    op: str, kinds: list[str], random: np.random.Generator, depth: int, activation: ActivationFunctionType, type: str = "int8"
) -> tuple[bytes, Any]:
    """A model of a layer with these channels, and its input, which has the smallest and largest values in places."""
    filters = len(kinds)
    axis, taps = 0, (1, 1)
    common: dict[str, Any] = {"padding": Padding.SAME, "stride_h": 1, "stride_w": 1, "fused_activation_function": activation}
    options: Any
    if op == "FULLY_CONNECTED":
        shape, weights_shape, target = (5, depth), (filters, depth), (5, filters)
        options = FullyConnectedOptions(fused_activation_function=activation)
    elif op == "DEPTHWISE_CONV_2D":
        taps, axis = (3, 3), 3
        shape, weights_shape, target = (1, 6, 5, filters), (1, *taps, filters), (1, 6, 5, filters)
        options = DepthwiseConv2DOptions(depth_multiplier=1, dilation_h_factor=1, dilation_w_factor=1, **common)
    else:
        groups = 2 if op == "grouped" else 1
        shape, weights_shape, target = (1, 4, 3, depth * groups), (filters, *taps, depth), (1, 4, 3, filters)
        if op == "TRANSPOSE_CONV":
            options = TransposeConvOptions(**common)
        else:
            options = Conv2DOptions(dilation_h_factor=1, dilation_w_factor=1, **common)
    weights = random.integers(-127, 128, weights_shape).astype("int8")
    found = [channel(kind, np.moveaxis(weights, axis, 0)[number], random) for number, kind in enumerate(kinds)]
    scale = np.float32(0.0235)
    scales = np.array([factor for factor, _ in found], np.float32)
    wide = type == "int16"
    biases = np.array([bias for _, bias in found], "int64" if wide else "int32")
    info = np.iinfo(type)
    x = random.choice(np.array([info.min, info.max, 0, 5, -77], type), shape)
    x[..., : max(1, shape[-1] // 2)] = random.integers(info.min, info.max + 1, x[..., : max(1, shape[-1] // 2)].shape)
    zero, out_zero = (0, 0) if wide else (int(each) for each in random.integers(-128, 128, 2))
    bias = Spec(str(biases.dtype), (filters,), scales * scale, [0] * filters, 0, biases)
    inputs: list[Any] = [Spec(type, shape, scale, zero), Spec("int8", weights_shape, scales, [0] * filters, axis, weights), bias]
    if op == "TRANSPOSE_CONV":
        inputs = [np.array(target, np.int32), inputs[1], inputs[0], bias]
    name = "CONV_2D" if op == "grouped" else op
    version = {"TRANSPOSE_CONV": 4 if not wide else 5, "FULLY_CONNECTED": 5 if not wide else 7}.get(op, 6)
    return one_op_model(name, inputs, [Spec(type, target, scale, out_zero)], options, version=version), x


@st.composite
def layers(draw: st.DrawFn, type: str = "int8") -> tuple[bytes, Any]:
    op = draw(st.sampled_from(OPS))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    filters = draw(st.sampled_from([2, 8, 22, 40] if type == "int8" else [2, 8]))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=filters, max_size=filters))
    # Grouped and transposed convolutions, and those of int16, are compiled if they are small.
    deep = type == "int8" and op in ("CONV_2D", "FULLY_CONNECTED")
    depth = draw(st.sampled_from([3, 16, 700] if deep and has_byte_products() else [3, 16]))
    return layer(op, kinds, random, depth, draw(st.sampled_from(CLAMPS)), type)


@pytest.mark.sweep
@pytest.mark.parametrize("type", ["int8", "int16"])
def test_layers_of_any_channels_are_compiled_and_answer_as_the_numpy_ones(agree: Callable[..., None], type: str) -> None:
    @given(layers(type))
    @SLOWLY
    def check(made: tuple[bytes, Any]) -> None:
        assert is_compiled(made[0])
        agree(made[0], [made[1]])

    check()


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_channel_of_its_own_keeps_no_layer_from_its_kernel(agree: Callable[..., None], op: str, kind: str) -> None:
    made = layer(op, ["usual", kind, "usual", "usual"], np.random.default_rng(4), 16, ActivationFunctionType.RELU)
    assert is_compiled(made[0])
    agree(made[0], [made[1]])


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("kinds", [["usual"], ["power of two"], ["usual", "fine"], ["large"], ["usual", "no scale"]])
def test_bounds_of_all_channels_together_give_the_same_numbers_as_those_of_each(
    monkeypatch: pytest.MonkeyPatch, op: str, kinds: list[str]
) -> None:
    short, taken = output_stage._plain_offsets, []

    def compared(layer: Any, kind: Any, largest: float, added: int, values: Any) -> Any:
        found = short(layer, kind, largest, added, values)
        wanted = output_stage._scaling(layer.requantizer(), kind, largest)
        if found is not None:
            assert not isinstance(wanted, str)
            np.testing.assert_array_equal(found, wanted.offsets + layer.row_sums() * added)
            np.testing.assert_array_equal(values[:, : len(found)], [wanted.factors, wanted.above, wanted.below])
        taken.append(found is not None)
        return found

    monkeypatch.setattr(output_stage, "_plain_offsets", compared)
    for seed in range(12):
        random = np.random.default_rng(seed)
        content, _ = layer(op, kinds * 4, random, int(random.integers(1, 64)), CLAMPS[seed % 3])
        Interpreter(model_content=content).allocate_tensors()
    assert len(taken) == 12
    if "fine" not in kinds:
        assert any(taken) == (kinds[-1] in ("usual", "power of two"))


@pytest.mark.skipif(not has_byte_products(), reason="sums of float32 are exact up to 2**24 only")
@pytest.mark.parametrize("activation", CLAMPS)
@pytest.mark.parametrize("kind", KINDS)
def test_sums_above_two_million_are_compiled_whatever_the_shift(
    agree: Callable[..., None], kind: str, activation: ActivationFunctionType
) -> None:
    kinds = ["fine", kind, "fine", *["usual"] * 30]
    for op in ("CONV_2D", "FULLY_CONNECTED"):
        made = layer(op, kinds, np.random.default_rng(5), 1500, activation)
        assert is_compiled(made[0])
        agree(made[0], [made[1]])


@pytest.mark.parametrize("op", [op for op in OPS if op != "grouped"])
def test_layers_of_any_channels_answer_as_litert(op: str) -> None:
    model, x = layer(op, KINDS * 2, np.random.default_rng(6), 40, ActivationFunctionType.RELU)
    assert is_compiled(model)
    # The reference kernels have one rounding for all processors.
    [wanted] = invoke(litert_interpreter("BUILTIN_REF")(model_content=model), x)
    np.testing.assert_array_equal(invoke(Interpreter(model_content=model), x)[0], wanted)


@pytest.mark.parametrize("scale", [2.0**-22, 3.7e-8, 1e-11, 0.001])
@pytest.mark.parametrize("types", [("int8", "int8"), ("int16", "int16")])
def test_integer_products_of_any_scale_are_compiled(agree: Callable[..., None], types: tuple[str, str], scale: float) -> None:
    random = np.random.default_rng(7)
    info = np.iinfo(types[0])
    left, right = (random.integers(info.min, info.max + 1, shape).astype(types[0]) for shape in ((2, 3, 300), (2, 300, 4)))
    inputs = [Spec(kind, each.shape, 1.0 if place else scale, 0) for place, (kind, each) in enumerate(zip(types, (left, right)))]
    model = one_op_model("BATCH_MATMUL", inputs, [Spec(types[0], (2, 3, 4), 1.0, 0)], BatchMatMulOptions(), version=3)
    assert is_compiled(model)
    agree(model, [left, right])


def test_a_layer_that_is_declined_is_told_the_reason_of_the_kernel_that_declines_it() -> None:
    random = np.random.default_rng(8)
    weights = random.integers(-127, 128, (64, 1, 1, 64)).astype("int8")
    scales = np.full(64, 0.003, np.float32)
    bias = np.zeros(64, np.int32)
    bias[9] = 2**31 - 1  # which the sums of ordinary weights wrap around
    inputs = [Spec("int8", (1, 32, 32, 64), 0.02, 0), Spec("int8", weights.shape, scales, [0] * 64, 0, weights)]
    inputs.append(Spec("int32", (64,), scales * np.float32(0.02), [0] * 64, 0, bias))
    options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1)
    interpreter = Interpreter(model_content=one_op_model("CONV_2D", inputs, [Spec("int8", (1, 32, 32, 64), 0.02, 0)], options))
    interpreter.allocate_tensors()
    [node] = interpreter.explain()
    assert node.distribution == "oplet-builtin-ops"
    assert "oplet-compiled-ops 0.1.0 declined it: the sums of channel 9 may reach 2.148e+09; it adds up to" in node.why


def around_steps(requantization: Requantization, limit: int) -> np.ndarray:
    """All sums beside which the output of the only channel changes, found by bisection, and those at the ends and around 0."""
    places, outputs = np.array([-limit, limit]), None
    while True:
        outputs = np.empty((len(places), 1), np.int64)
        requantization.requantize(places[:, None], outputs)
        changes = np.flatnonzero((np.diff(outputs[:, 0]) != 0) & (np.diff(places) > 1))
        if not len(changes):
            break
        places = np.sort(np.concatenate([places, (places[changes] + places[changes + 1]) // 2]))
    near = np.concatenate([places + step for step in (-1, 0, 1)] + [np.arange(-3, 4)])
    return np.clip(near, -limit, limit)


@given(
    st.sampled_from([Rounding.DOUBLE, Rounding.UP]),
    st.one_of(st.floats(2.0**-31, 2.0**-9), st.integers(9, 31).map(lambda bits: 2.0**-bits)),
    st.integers(22, 30),
    st.integers(-128, 127),
    st.booleans(),
)
@settings(max_examples=examples(200), deadline=None)
def test_float64_rises_where_the_definition_does(rounding: Rounding, scale: float, bits: int, zero: int, clamped: bool) -> None:
    limit = (1 << bits) - 1
    low = zero if clamped else -128
    layer = Requantization(np.full(8, scale), np.zeros(8, np.int64), float(limit), zero, low, 127, rounding)
    above, below, sure = middle_thresholds(layer, np.arange(8))
    assert sure.all()
    sums = around_steps(Requantization(np.array([scale] * 8)[:1], np.zeros(1, np.int64), float(limit), zero, low, 127), limit)
    wanted = np.empty((len(sums), 8), np.int64)
    layer.requantize(np.repeat(sums[:, None], 8, 1), wanted)
    got = np.rint(sums * layer.factors[0] + np.where(sums < 0, below[0], above[0])) + zero
    np.testing.assert_array_equal(np.clip(got, low, 127), wanted[:, 0])
