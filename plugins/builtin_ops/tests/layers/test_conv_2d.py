from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, OpResolverType
from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Conv2DOptions, DepthwiseConv2DOptions
from oplet_testing import invoke, one_op_model, run_op
from oplet_testing.one_op import Spec

Function = Callable[..., Any]


def convolve(source: np.ndarray, weights: np.ndarray, bias: np.ndarray, **options: Any) -> np.ndarray:
    specs = [Spec("float32", source.shape), weights.astype(np.float32), bias.astype(np.float32)]
    model = one_op_model("CONV_2D", specs, [Spec("float32", (1, 1, 1, 1))], Conv2DOptions(**options), version=6)
    return np.asarray(run_op(model, source)[0])


def by_definition(source: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: int, dilation: int) -> np.ndarray:
    """VALID padding, one window at a time."""
    batch, height, width, _ = source.shape
    filters, rows, columns, depth = weights.shape
    out_h, out_w = ((n - (k - 1) * dilation - 1) // stride + 1 for n, k in ((height, rows), (width, columns)))
    result = np.empty((batch, out_h, out_w, filters))
    per_group = filters // (source.shape[3] // depth)
    for b, y, x, f in np.ndindex(*result.shape):
        channels = slice(f // per_group * depth, (f // per_group + 1) * depth)
        seen = source[b, y * stride :: dilation, x * stride :: dilation, channels][:rows, :columns]
        result[b, y, x, f] = (seen * weights[f]).sum() + bias[f]
    return result


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_each_output_is_a_window_times_a_filter(stride: int, dilation: int, groups: int) -> None:
    random = np.random.default_rng(0)
    source = random.normal(size=(2, 9, 8, 4)).astype(np.float32)
    weights, bias = random.normal(size=(8, 3, 2, 4 // groups)), random.normal(size=8)
    steps = {"stride_h": stride, "stride_w": stride, "dilation_h_factor": dilation, "dilation_w_factor": dilation}
    result = convolve(source, weights, bias, padding=Padding.VALID, **steps)
    np.testing.assert_allclose(result, by_definition(source, weights, bias, stride, dilation), rtol=1e-4, atol=1e-5)


SHAPES = [  # source, filters, steps
    ((1, 6, 7, 5), (8, 1, 1, 5), {}),
    ((2, 6, 7, 3), (4, 3, 3, 3), {}),
    ((1, 9, 8, 4), (6, 3, 2, 2), {"stride_h": 2, "stride_w": 3}),
    ((2, 6, 7, 4), (6, 1, 1, 2), {}),  # groups of which each output has few products
    ((1, 40, 41, 6), (6, 1, 1, 2), {}),
    ((3, 5, 5, 2), (2, 5, 5, 2), {}),
    ((1, 12, 11, 3), (4, 3, 2, 3), {"dilation_h_factor": 2, "dilation_w_factor": 3}),
    ((2, 8, 8, 3), (4, 2, 2, 3), {"stride_h": 2, "stride_w": 2}),
    ((1, 1, 40, 3), (5, 1, 7, 3), {"stride_w": 2}),
    ((1, 24, 40, 16), (96, 3, 3, 16), {}),
]


@pytest.mark.parametrize("padding", list(Padding))
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_results_equal_litert_s(
    shapes: Any, kind: str, padding: Padding, litert: Function, layer: Function, assert_equal: Function
) -> None:
    source, weights, steps = shapes
    if kind == "hybrid" and source[3] != weights[3]:
        pytest.skip("LiteRT refuses groups with a single scale")
    for activation in (ActivationFunctionType.NONE, ActivationFunctionType.RELU6):
        options = Conv2DOptions(padding=padding, fused_activation_function=activation, **{"stride_h": 1, "stride_w": 1, **steps})
        model, feeds = layer("CONV_2D", kind, source, weights, options)
        assert_equal(
            kind, run_op(model, *feeds, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)[0], litert(model, *feeds)[0]
        )


def test_weights_may_arrive_at_run_time(kind: str, litert: Function, layer: Function, assert_equal: Function) -> None:
    options = Conv2DOptions(stride_h=1, stride_w=1)
    model, feeds = layer("CONV_2D", kind, (1, 5, 5, 3), (4, 3, 3, 3), options, constant=False)
    assert_equal(kind, run_op(model, *feeds)[0], litert(model, *feeds)[0])


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_int16_filters_are_read_as_litert_reads_them(op: str, litert: Function) -> None:
    random = np.random.default_rng(0)
    shape = (2, 3, 3, 2) if op == "CONV_2D" else (1, 3, 3, 2)
    source, weights = (random.integers(-32768, 32768, s).astype(np.int16) for s in ((1, 4, 4, 2), shape))
    specs = [Spec("int16", source.shape, [0.001], [0]), Spec("int16", shape, [0.001], [0]), np.zeros(2, np.int64)]
    steps: dict[str, Any] = {"stride_h": 1, "stride_w": 1}
    options = Conv2DOptions(**steps) if op == "CONV_2D" else DepthwiseConv2DOptions(depth_multiplier=1, **steps)
    model = one_op_model(op, specs, [Spec("int16", (1, 1, 1, 1), [0.01], [0])], options, version=4)
    np.testing.assert_array_equal(run_op(model, source, weights)[0], litert(model, source, weights)[0])


def test_a_zero_of_the_padding_is_the_input_s_zero_point() -> None:
    source = Spec("int8", (1, 1, 1, 1), [0.5], [7])
    weights = Spec("int8", (1, 3, 3, 1), [1.0], [0], data=np.full((1, 3, 3, 1), 100, np.int8))
    output = Spec("int8", (1, 1, 1, 1), [50.0], [-3])
    model = one_op_model("CONV_2D", [source, weights, np.zeros(1, np.int32)], [output], Conv2DOptions(stride_h=1, stride_w=1))
    assert run_op(model, np.full((1, 1, 1, 1), 7, np.int8))[0].item() == -3
    assert run_op(model, np.full((1, 1, 1, 1), 9, np.int8))[0].item() == -1


def test_an_input_that_is_resized_is_convolved_anew(layer: Function) -> None:
    model, _ = layer("CONV_2D", "float", (1, 4, 4, 2), (3, 3, 3, 2), Conv2DOptions(stride_h=1, stride_w=1))
    large = np.random.default_rng(1).normal(size=(2, 30, 20, 2)).astype(np.float32)
    alone = np.concatenate([run_op(model, large[i : i + 1], resize=True)[0] for i in range(2)])
    np.testing.assert_allclose(run_op(model, large, resize=True)[0], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("other", [(1, 5, 6, 2), (2, 3, 3, 4), (1, 6, 5, 8)], ids=str)
def test_weights_laid_out_for_one_shape_are_not_those_of_another(
    kind: str, other: tuple[int, ...], layer: Function, assert_equal: Function
) -> None:
    # The filters cover the first shape; the others have more windows, or their channels make groups.
    options = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1)
    model, [first] = layer("CONV_2D", kind, (1, 3, 3, 2), (4, 3, 3, 2), options)
    value = np.resize(first, other)
    interpreter = Interpreter(model_content=model)
    before = invoke(interpreter, first, resize=True)[0]
    assert_equal(kind, invoke(interpreter, value, resize=True)[0], run_op(model, value, resize=True)[0])
    assert_equal(kind, invoke(interpreter, first, resize=True)[0], before)


def test_an_empty_batch_gives_an_empty_output(kind: str, layer: Function) -> None:
    model, feeds = layer("CONV_2D", kind, (0, 4, 4, 2), (3, 3, 3, 2), Conv2DOptions(stride_h=1, stride_w=1))
    assert run_op(model, *feeds)[0].shape == (0, 4, 4, 3)


@pytest.mark.parametrize(
    ("source", "weights", "bias", "options", "reason"),
    [
        ((1, 4, 4, 3), (2, 3, 3, 2), 2, {}, "3 channels, which is no multiple of the 2"),
        ((1, 4, 4, 4), (3, 3, 3, 2), 3, {}, "3 filters, which cannot be split into 2 groups"),
        ((1, 4, 4, 3), (2, 3, 3, 3), 3, {}, "must have 2 values"),
        ((4, 4, 3), (2, 3, 3, 3), 2, {}, "4 dimensions"),
        ((1, 4, 4, 3), (2, 0, 3, 3), 2, {}, "filter's h is 0"),
        ((1, 4, 4, 3), (2, 3, 3, 0), 2, {}, "must not be empty"),
        ((1, 4, 4, 3), (2, 3, 3, 3), 2, {"stride_h": 0}, "stride_h is 0"),
        ((1, 4, 4, 3), (2, 3, 3, 3), 2, {"dilation_w_factor": 0}, "dilation_w_factor is 0"),
        ((1, 4, 4, 3), (2, 7, 3, 3), 2, {"padding": Padding.VALID}, "covers 7"),
    ],
)
def test_a_wrong_model_is_refused(source: Any, weights: Any, bias: int, options: dict[str, Any], reason: str) -> None:
    specs = [Spec("float32", source), np.zeros(weights, np.float32), np.zeros(bias, np.float32)]
    whole = Conv2DOptions(**{"stride_h": 1, "stride_w": 1, **options})
    model = one_op_model("CONV_2D", specs, [Spec("float32", (1, 1, 1, 1))], whole)
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros(source, np.float32))


@pytest.mark.parametrize(
    ("scales", "zero_point", "axis", "reason"),
    [
        ([0.1, 0.2, 0.3], 0, 0, "got 3"),
        ([0.1, 0.2], 0, 3, "run along dimension 3 and must run along 0"),
        ([0.1], 4, 0, "has a zero point"),
        (None, 0, 0, "needs scales"),
    ],
)
def test_wrong_quantization_is_refused(scales: Any, zero_point: int, axis: int, reason: str) -> None:
    points = None if scales is None else [zero_point] * len(scales)
    channels = 2 if axis == 0 else len(scales)
    weights = Spec("int8", (2, 1, 1, channels), scales, points, axis, data=np.zeros((2, 1, 1, channels), np.int8))
    specs = [Spec("int8", (1, 2, 2, channels), [0.1], [0]), weights, np.zeros(2, np.int32)]
    output, options, image = Spec("int8", (1, 1, 1, 1), [0.1], [0]), Conv2DOptions(stride_h=1, stride_w=1), (1, 2, 2, channels)
    with pytest.raises(OpletError, match=reason):
        run_op(one_op_model("CONV_2D", specs, [output], options), np.zeros(image, np.int8))
