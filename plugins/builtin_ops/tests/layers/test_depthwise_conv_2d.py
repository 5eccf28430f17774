from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, TensorType
from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Conv2DOptions, DepthwiseConv2DOptions
from oplet_testing import invoke, one_op_model, run_op
from oplet_testing.one_op import Spec

Function = Callable[..., Any]

SHAPES = [  # source, filters, steps
    ((1, 6, 7, 5), (1, 3, 3, 5), {}),
    ((2, 6, 7, 3), (1, 3, 2, 3), {"stride_h": 2, "stride_w": 2}),
    ((1, 9, 13, 4), (1, 3, 4, 4), {"stride_h": 1, "stride_w": 3}),
    ((2, 9, 8, 4), (1, 2, 2, 8), {"stride_h": 2, "stride_w": 3}),
    ((1, 9, 8, 4), (1, 1, 1, 4), {"stride_h": 2, "stride_w": 2}),
    ((1, 12, 11, 3), (1, 3, 2, 3), {"dilation_h_factor": 2, "dilation_w_factor": 3}),
    ((1, 7, 9, 1), (1, 3, 3, 6), {"stride_h": 2}),
    ((1, 5, 5, 300), (1, 5, 5, 300), {"stride_w": 2}),
    ((1, 70, 90, 24), (1, 3, 3, 24), {}),
    ((2, 1, 200, 6), (1, 1, 7, 6), {"stride_w": 2}),
]


@pytest.mark.parametrize("padding", list(Padding))
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_results_equal_litert_s(
    shapes: Any, kind: str, padding: Padding, litert: Function, layer: Function, assert_equal: Function
) -> None:
    source, weights, steps = shapes
    if kind == "hybrid":
        pytest.skip("LiteRT wants a scale for each channel")
    multiplier = weights[3] // source[3]
    for activation in (ActivationFunctionType.NONE, ActivationFunctionType.RELU_N1_TO_1):
        options = DepthwiseConv2DOptions(
            padding=padding,
            fused_activation_function=activation,
            depth_multiplier=multiplier,
            **{"stride_h": 1, "stride_w": 1, **steps},
        )
        model, feeds = layer("DEPTHWISE_CONV_2D", kind, source, weights, options, axis=3)
        assert_equal(kind, run_op(model, *feeds)[0], litert(model, *feeds)[0])


def test_the_bias_may_be_left_out_and_weights_may_arrive_at_run_time(
    kind: str, litert: Function, layer: Function, assert_equal: Function
) -> None:
    if kind == "hybrid":
        pytest.skip("LiteRT wants a scale for each channel")
    options = DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1)
    for arguments in ({"bias": False}, {"constant": False}):
        model, feeds = layer("DEPTHWISE_CONV_2D", kind, (1, 5, 6, 3), (1, 3, 3, 3), options, axis=3, **arguments)
        assert_equal(kind, run_op(model, *feeds)[0], litert(model, *feeds)[0])


def test_weights_laid_out_for_one_channel_are_not_those_of_several(kind: str, layer: Function, assert_equal: Function) -> None:
    options = DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1)
    model, [one] = layer("DEPTHWISE_CONV_2D", kind, (1, 5, 6, 1), (1, 3, 3, 8), options, axis=3)
    several = np.resize(one, (2, 4, 3, 2))
    interpreter = Interpreter(model_content=model)
    before = invoke(interpreter, one, resize=True)[0]
    assert_equal(kind, invoke(interpreter, several, resize=True)[0], run_op(model, several, resize=True)[0])
    assert_equal(kind, invoke(interpreter, one, resize=True)[0], before)


def test_infinite_inputs_touch_only_the_windows_that_see_them() -> None:
    source = np.zeros((1, 1, 9, 2), np.float32)
    source[0, 0, 4, 0] = np.inf
    specs = [Spec("float32", source.shape), np.ones((1, 1, 3, 2), np.float32), np.zeros(2, np.float32)]
    options = DepthwiseConv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=2, depth_multiplier=1)
    model = one_op_model("DEPTHWISE_CONV_2D", specs, [Spec("float32", (1, 1, 1, 1))], options)
    assert run_op(model, source)[0][0, 0, :, 0].tolist() == [0, np.inf, np.inf, 0]


@pytest.mark.parametrize(
    ("weights", "bias", "options", "reason"),
    [
        ((1, 3, 3, 4), 4, {}, "4 filters, which is no multiple of the 3 channels"),
        ((2, 3, 3, 3), 3, {}, r"must have shape \[1, height, width, channels\]"),
        ((1, 3, 3, 3), 2, {}, "must have 3 values"),
        ((1, 3, 3, 3), 3, {"stride_w": -1}, "stride_w is -1"),
        ((1, 5, 3, 3), 3, {"padding": Padding.VALID}, "covers 5"),
    ],
)
def test_a_wrong_model_is_refused(weights: Any, bias: int, options: dict[str, Any], reason: str) -> None:
    specs = [Spec("float32", (1, 3, 3, 3)), np.zeros(weights, np.float32), np.zeros(bias, np.float32)]
    whole = DepthwiseConv2DOptions(**{"stride_h": 1, "stride_w": 1, "depth_multiplier": 1, **options})
    model = one_op_model("DEPTHWISE_CONV_2D", specs, [Spec("float32", (1, 1, 1, 1))], whole)
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros((1, 3, 3, 3), np.float32))


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("plugins", [["oplet-builtin-ops"], None], ids=["numpy", "all"])
def test_a_bias_of_int32_beside_int16_gives_what_a_conv_2d_of_each_channel_gives_in_litert(
    multiplier: int, plugins: list[str] | None
) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    random = np.random.default_rng(6)
    channels, filters = 3, 3 * multiplier
    source = random.integers(-32768, 32768, (1, 7, 6, channels)).astype(np.int16)
    weights = random.integers(-127, 128, (1, 3, 3, filters)).astype(np.int8)
    bias = random.integers(-(10**6), 10**6, filters).astype(np.int32)
    scales = random.uniform(0.001, 0.02, filters).astype(np.float32)
    step, out = np.float32(0.01), np.float32(0.05)

    def spec(weights: Any, bias: Any, scales: Any, axis: int, channels: int) -> tuple[list[Spec], list[Spec]]:
        zeros = [0] * len(bias)
        return [
            Spec("int16", (1, 7, 6, channels), step, 0),
            Spec("int8", weights.shape, scales, zeros, axis, data=weights),
            Spec("int32", bias.shape, scales * step, zeros, 0, data=bias),
        ], [Spec("int16", (1, 7, 6, len(bias)), out, 0)]

    expected = []
    for channel in range(channels):
        own = slice(channel * multiplier, (channel + 1) * multiplier)
        inputs, outputs = spec(weights[0, ..., own].transpose(2, 0, 1)[..., None], bias[own], scales[own], 0, 1)
        options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, quantized_bias_type=TensorType.INT32)
        model = one_op_model("CONV_2D", inputs, outputs, options, version=8)
        interpreter = litert.Interpreter(model_content=model, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, source[..., channel : channel + 1])
        interpreter.invoke()
        expected.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=multiplier)
    model = one_op_model("DEPTHWISE_CONV_2D", *spec(weights, bias, scales, 3, channels), options, version=5)
    interpreter = Interpreter(model_content=model, plugins=plugins)
    np.testing.assert_array_equal(invoke(interpreter, source)[0], np.concatenate(expected, -1))
