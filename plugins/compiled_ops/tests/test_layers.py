"""Compiled layers answer as the numpy ones do, whatever their shapes, options and quantization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from tests.budgets import examples

from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import BatchMatMulOptions, Conv2DOptions, DepthwiseConv2DOptions, FullyConnectedOptions
from oplet_compiled_ops.convolution import depthwise, hybrid, products
from oplet_testing import Spec, one_op_model, run_op

CLAMPS = [ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU6]
SLOWLY = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def layers(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """A one-op model of a layer, and its input."""
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    op = draw(st.sampled_from(["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"]))
    kind = draw(st.sampled_from(["float32", "int8", "int8 per channel", "uint8", "int16"]))
    batch = draw(st.integers(1, 3))
    channels = draw(st.sampled_from([1, 3, 8, 16, 17, 32, 40]))
    filters = draw(st.sampled_from([1, 5, 16, 24, 33, 48, 70]))
    activation = draw(st.sampled_from(CLAMPS))
    shape: tuple[int, ...]
    options: Any
    if op == "FULLY_CONNECTED":
        shape, weights_shape = (batch * 3, channels), (filters, channels)
        options = FullyConnectedOptions(fused_activation_function=activation)
        axis = 0
    else:
        height, width = draw(st.integers(1, 12)), draw(st.integers(1, 12))
        taps = draw(st.sampled_from([(1, 1), (3, 3), (5, 2)]))
        padding = draw(st.sampled_from([Padding.SAME, Padding.VALID]))
        dilation = draw(st.sampled_from([1, 1, 2]))
        if padding == Padding.VALID:
            height, width = height + (taps[0] - 1) * dilation, width + (taps[1] - 1) * dilation
        shape = (batch, height, width, channels)
        common: dict[str, Any] = {
            "padding": padding,
            "stride_h": draw(st.integers(1, 2)),
            "stride_w": draw(st.integers(1, 2)),
            "dilation_h_factor": dilation,
            "dilation_w_factor": dilation,
            "fused_activation_function": activation,
        }
        if op == "CONV_2D":
            weights_shape, axis, options = (filters, *taps, channels), 0, Conv2DOptions(**common)
        else:
            multiplier = draw(st.sampled_from([1, 1, 2]))
            filters, axis = channels * multiplier, 3
            weights_shape = (1, *taps, filters)
            options = DepthwiseConv2DOptions(depth_multiplier=multiplier, **common)
    return _layer(op, kind, shape, weights_shape, axis, filters, options, random, draw(st.booleans()))


def _layer(
    op: str,
    kind: str,
    shape: Any,
    weights_shape: Any,
    axis: int,
    filters: int,
    options: Any,
    random: Any,
    has_bias: bool,
    *,
    fixed: bool = False,
) -> tuple[bytes, list[Any]]:
    guess = [1] * len(shape)
    if kind == "float32":
        weights = random.standard_normal(weights_shape).astype("float32")
        bias = random.standard_normal(filters).astype("float32") if has_bias else None
        x = random.standard_normal(shape).astype("float32")
        model = one_op_model(op, [x if fixed else Spec("float32", shape), weights, bias], [Spec("float32", guess)], options)
        return model, [] if fixed else [x]
    dtype = kind.split()[0]
    info = np.iinfo(dtype)
    weights_type = np.iinfo("uint8" if dtype == "uint8" else "int8")
    per_channel = "channel" in kind or (dtype == "int16" and op != "FULLY_CONNECTED")
    scales = random.uniform(0.001, 0.02, filters if per_channel else 1).astype("float32")
    points = [int(random.integers(0, 255))] if dtype == "uint8" else [0] * len(scales)
    zero, out_zero = (0, 0) if dtype == "int16" else (int(random.integers(info.min, info.max)) for _ in range(2))
    in_scale = np.float32(random.uniform(0.001, 0.1))
    depth = int(np.prod(weights_shape)) // filters
    spread = in_scale * float(scales.mean()) * np.sqrt(depth) * 64 * (info.max - info.min) / 4
    out_scale = float(np.float32(spread / (info.max - info.min) * random.uniform(0.5, 8)))
    weights = Spec(
        weights_type.dtype,
        weights_shape,
        scales,
        points,
        axis,
        random.integers(weights_type.min + (dtype != "uint8"), weights_type.max + 1, weights_shape).astype(weights_type.dtype),
    )
    bias_type = "int64" if dtype == "int16" else "int32"
    bias = None
    if has_bias:
        values = random.integers(-2000, 2000, filters).astype(bias_type)
        bias = Spec(bias_type, (filters,), scales * in_scale, [0] * len(scales), 0, values)
    x = random.integers(info.min, info.max + 1, shape).astype(dtype)
    inputs = [Spec(dtype, shape, in_scale, zero, data=x if fixed else None), weights, bias]
    model = one_op_model(op, inputs, [Spec(dtype, guess, out_scale, out_zero)], options)
    return model, [] if fixed else [x]


@pytest.mark.sweep
@given(layers())
@SLOWLY
def test_compiled_layers_answer_as_the_numpy_ones(agree: Callable[..., None], layer: tuple[bytes, list[Any]]) -> None:
    agree(*layer)


@pytest.mark.sweep
@given(layers())
@SLOWLY
def test_threads_change_nothing(agree: Callable[..., None], layer: tuple[bytes, list[Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (products, depthwise, hybrid):
            patch.setattr(module, "_WORTH", 1)  # else such small layers run on one thread
        for name in ("_WORTH_BYTES", "_WORTH_COPYING"):
            patch.setattr(products, name, 1)
        agree(*layer, threads=3)


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("kind", ["float32", "int8 per channel"])
def test_maps_that_are_worth_several_threads_are_cut_right(agree: Callable[..., None], op: str, kind: str) -> None:
    shape = (4, 61, 57, 32)
    options: Any = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1)
    weights = (48, 3, 3, 32)
    if op == "DEPTHWISE_CONV_2D":
        options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1)
        options.dilation_h_factor = options.dilation_w_factor = 1
        weights = (1, 3, 3, 32)
    axis = 3 if weights[0] == 1 else 0
    model, values = _layer(op, kind, shape, weights, axis, weights[axis], options, np.random.default_rng(5), True)
    agree(model, values, threads=4)
    agree(model, values)


@pytest.mark.parametrize("bias", [2**30, -(2**30)])
def test_sums_too_large_for_the_compiled_finish_are_right(agree: Callable[..., None], bias: int) -> None:
    weights = Spec("int8", (4, 8), [1.0], [0], 0, np.full((4, 8), 127, "int8"))
    biases = Spec("int32", (4,), [1.0], [0], 0, np.array([bias, 5, -bias, 0], "int32"))
    options = FullyConnectedOptions()
    model = one_op_model(
        "FULLY_CONNECTED", [Spec("int8", (2, 8), 1.0, 3), weights, biases], [Spec("int8", (2, 4), 1.0, -1)], options
    )
    agree(model, [np.arange(-8, 8, dtype="int8").reshape(2, 8)])


def test_infinite_and_undefined_numbers_pass_through(agree: Callable[..., None]) -> None:
    x = np.array([[np.nan, np.inf, -np.inf, 1.0]], "float32").repeat(3, 0)
    options = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1)
    options.fused_activation_function = ActivationFunctionType.RELU6
    inputs = [Spec("float32", (1, 3, 4, 1)), np.ones((2, 1, 1, 1), "float32"), np.zeros(2, "float32")]
    agree(one_op_model("CONV_2D", inputs, [Spec("float32", (1, 3, 4, 2))], options), [x.reshape(1, 3, 4, 1)])


def test_a_resized_input_gets_kernels_laid_out_anew(agree: Callable[..., None]) -> None:
    from oplet import Interpreter

    options = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1)
    weights = np.random.default_rng(0).standard_normal((3, 2, 3, 4)).astype("float32")
    model = one_op_model("CONV_2D", [Spec("float32", (1, 3, 3, 4)), weights, None], [Spec("float32", (1, 2, 1, 3))], options)
    interpreter = Interpreter(model_content=model)
    for width in (3, 5, 3):
        x = np.random.default_rng(width).standard_normal((2, 4, width, 4)).astype("float32")
        interpreter.resize_tensor_input(0, x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        patches = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2))
        np.testing.assert_allclose(y, np.einsum("byxcij,fijc->byxf", patches, weights), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize("kind", ["float32", "int8", "uint8"])
def test_layers_of_constants_alone_are_computed_once(agree: Callable[..., None], op: str, kind: str) -> None:
    options: Any = {
        "CONV_2D": Conv2DOptions(stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1),
        "DEPTHWISE_CONV_2D": DepthwiseConv2DOptions(
            stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1, depth_multiplier=1
        ),
        "FULLY_CONNECTED": FullyConnectedOptions(),
    }[op]
    shape = (3, 8) if op == "FULLY_CONNECTED" else (1, 5, 5, 8)
    weights = {"CONV_2D": (4, 3, 3, 8), "DEPTHWISE_CONV_2D": (1, 3, 3, 8), "FULLY_CONNECTED": (4, 8)}[op]
    axis = 3 if op == "DEPTHWISE_CONV_2D" else 0
    model, values = _layer(op, kind, shape, weights, axis, weights[axis], options, np.random.default_rng(1), True, fixed=True)
    agree(model, values)


@pytest.mark.parametrize("rows", [1, 3, 6])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_integer_weights_on_floats(agree: Callable[..., None], rows: int, asymmetric: bool) -> None:
    random = np.random.default_rng(rows)
    weights = Spec("int8", (33, 40), [0.02], [0], 0, random.integers(-127, 128, (33, 40)).astype("int8"))
    options = FullyConnectedOptions(asymmetric_quantize_inputs=asymmetric, fused_activation_function=ActivationFunctionType.RELU)
    inputs = [Spec("float32", (rows, 40)), weights, random.standard_normal(33).astype("float32")]
    model = one_op_model("FULLY_CONNECTED", inputs, [Spec("float32", (rows, 33))], options)
    agree(model, [random.standard_normal((rows, 40)).astype("float32")])


@pytest.mark.parametrize("activation", [ActivationFunctionType.NONE, ActivationFunctionType.RELU])
@pytest.mark.parametrize("zero_point", [-128, 5])
@pytest.mark.parametrize("least", [2.0**-12, 2.0**-20])
def test_channels_whose_scales_lie_far_apart_are_rounded_alike(
    activation: ActivationFunctionType, zero_point: int, least: float, agree: Callable[..., None]
) -> None:
    random = np.random.default_rng(1)
    scales = np.geomspace(least, 0.3, 40)
    weights = random.integers(-127, 128, (40, 1, 1, 32)).astype(np.int8)
    bias = random.integers(-3000, 3000, 40).astype(np.int32)
    inputs = [
        Spec("int8", (1, 64, 64, 32), [0.5], [3]),
        Spec("int8", weights.shape, scales.tolist(), [0] * 40, axis=0, data=weights),
        Spec("int32", (40,), (scales / 2).tolist(), [0] * 40, axis=0, data=bias),
    ]
    options = Conv2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1, fused_activation_function=activation)
    output = Spec("int8", (1, 64, 64, 40), [1.0], [zero_point])
    agree(
        one_op_model("CONV_2D", inputs, [output], options, version=3),
        [random.integers(-128, 128, inputs[0].shape).astype(np.int8)],
    )


@st.composite
def stacks(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """A model of BATCH_MATMUL, and its inputs."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, depth, columns = (draw(st.sampled_from([1, 3, 16, 17, 33, 49, 64, 100])) for _ in range(3))
    batches = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    turned = draw(st.booleans())
    few = tuple(length if draw(st.booleans()) else 1 for length in batches)[draw(st.integers(0, len(batches))) :]
    left, right = (few, batches) if draw(st.booleans()) else (batches, few)
    shapes = (*left, rows, depth), (*right, *((columns, depth) if turned else (depth, columns)))
    model = one_op_model(
        "BATCH_MATMUL",
        [Spec("float32", shape) for shape in shapes],
        [Spec("float32", (*batches, rows, columns))],
        BatchMatMulOptions(adj_x=False, adj_y=turned),
    )
    return model, [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@SLOWLY
@given(case=stacks(), threads=st.sampled_from([1, 2]))
def test_stacks_of_matrices_agree(case: tuple[bytes, list[Any]], threads: int, agree: Callable[..., None]) -> None:
    agree(*case, threads)


@pytest.mark.parametrize("columns", [16, 30, 100])
def test_one_matrix_for_a_stack_of_many_rows_is_divided_between_threads(columns: int, agree: Callable[..., None]) -> None:
    shapes = (2, 3, 70, 64), (64, columns)
    specs = [Spec("float32", shape) for shape in shapes]
    model = one_op_model("BATCH_MATMUL", specs, [Spec("float32", (2, 3, 70, columns))], BatchMatMulOptions())
    values = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in shapes]
    for threads in (1, 2, 3):
        agree(model, values, threads)


@pytest.mark.parametrize("units", [16, 32, 64])
def test_a_row_of_a_layer_has_the_same_bits_however_many_rows_there_are(units: int) -> None:
    random = np.random.default_rng(units)
    x, weights = random.standard_normal((100, 24)).astype(np.float32), random.standard_normal((units, 24)).astype(np.float32)
    bias = random.standard_normal(units).astype(np.float32)
    whole: Any = None
    for count in (100, 64, 40, 33, 32, 20, 17, 16, 9, 6, 4, 3, 2):
        inputs = [Spec("float32", [count, 24]), weights, bias]
        model = one_op_model("FULLY_CONNECTED", inputs, [Spec("float32", [count, units])])
        found = run_op(model, x[:count])[0]
        whole = found if whole is None else whole
        np.testing.assert_array_equal(found, whole[:count])


@pytest.mark.parametrize("many", [1, 1 << 15])
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("vectors", [1, 2, 4])
@pytest.mark.parametrize(
    ("filters", "runs", "length"), [(1, 1, 1), (64, 1, 32), (70, 3, 9), (33, 2, 12), (200, 1, 640), (4096, 1, 64)]
)
def test_panels_have_each_weight_in_its_place_and_zeros_around(
    many: int, integer: bool, vectors: int, filters: int, runs: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_AT_ONCE", 1 << 16)
    monkeypatch.setattr(products, "_MANY", many)
    matrix = np.random.default_rng(filters).integers(-128, 128, (filters, runs * length)).astype(np.int8)
    layout = products.Layout(runs, length, np.zeros(runs, np.int64), np.zeros(1, np.int64))
    panels = products.panels_of(matrix if integer else matrix.astype(np.float32), layout, vectors, integer)
    count, _, steps, width, group = panels.shape
    expected = np.zeros((count * width, runs, steps * group), panels.dtype)
    expected[:filters, :, :length] = matrix.reshape(filters, runs, length)
    assert np.array_equal(panels, expected.reshape(count, width, runs, steps, group).transpose(0, 2, 3, 1, 4))
    assert panels.ctypes.data % 64 == 0


@pytest.mark.parametrize("kind", ["float32", "int8", "uint8", "int16"])
@pytest.mark.parametrize(("window", "stride", "dilation"), [((4, 6), 3, 1), ((11, 1), 1, 1), ((3, 9), 2, 2), ((13, 13), 1, 1)])
@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_filters_of_any_size_are_compiled(
    kind: str, window: tuple[int, int], stride: int, dilation: int, multiplier: int, agree: Callable[..., None]
) -> None:
    random = np.random.default_rng(window[0])
    options = DepthwiseConv2DOptions(
        padding=Padding.SAME, stride_h=stride, stride_w=stride, depth_multiplier=multiplier,
        dilation_h_factor=dilation, dilation_w_factor=dilation,
    )  # fmt: skip
    size, channels = 20, 5 * multiplier
    out = -(-size // stride)
    zero = {"uint8": 120, "int8": -3}.get(kind, 0)
    inputs: list[Any] = [Spec(kind, (1, size, size, 5), [0.1], [zero])]
    if kind == "float32":
        inputs = [Spec(kind, (1, size, size, 5)), random.standard_normal((1, *window, channels)).astype(kind), None]
        x, y = random.standard_normal((1, size, size, 5)).astype(kind), Spec(kind, (1, out, out, channels))
    else:
        stored = "uint8" if kind == "uint8" else "int8"
        low = 0 if stored == "uint8" else -127
        weights = random.integers(low, low + 255, (1, *window, channels)).astype(stored)
        inputs.append(Spec(stored, weights.shape, [0.02], [128 if stored == "uint8" else 0], data=weights))
        inputs.append(None)
        info = np.iinfo(kind)
        x = random.integers(info.min, info.max, (1, size, size, 5)).astype(kind)
        y = Spec(kind, (1, out, out, channels), [2.0], [zero])
    model = one_op_model("DEPTHWISE_CONV_2D", inputs, [y], options, version=3)
    if kind != "int16":
        assert is_compiled(model)
    for threads in (1, 2):
        agree(model, [x], threads)
