"""Small layers that are computed directly: transposed, grouped, hybrid and 16-bit ones, and integer products, as the numpy kernels have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from plugins.compiled_ops.tests.conftest import answer
from tests.budgets import examples

from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    TransposeConvOptions,
)
from oplet_builtin_ops.layers.hybrid import quantize_asymmetric, quantize_symmetric, quantize_to_even
from oplet_compiled_ops.convolution.row_quantization import AROUND, QUANTIZE_BYTES, ROWS_TO_FLOATS, SYMMETRIC, TO_EVEN
from oplet_testing import Spec, one_op_model

CLAMPS = [ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU6]
SLOWLY = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
HARD = [0.0, -0.0, 1e-30, 1e30, np.inf, -np.inf, np.nan, 3.4e38]


def _operands(
    kind: str, shape: Any, weights_shape: Any, axis: int, filters: int, random: Any
) -> tuple[Any, Any, Any, Any, np.ndarray[Any, Any]]:
    """The specs of input, weights, bias and (without its shape) output, and a value of the input."""
    if kind == "float32":
        weights: Any = random.standard_normal(weights_shape).astype("float32")
        bias: Any = random.standard_normal(filters).astype("float32")
        return (
            Spec("float32", shape),
            weights,
            bias,
            lambda s: Spec("float32", s),
            random.standard_normal(shape).astype("float32"),
        )
    values = random.integers(-127, 128, weights_shape).astype("int8")
    if kind.startswith("hybrid"):
        scales = (random.random(filters) * 0.01 + 0.001).tolist() if kind == "hybrid per channel" else [0.01]
        weights = Spec("int8", weights_shape, scales, [0] * len(scales), axis, values)
        bias = random.standard_normal(filters).astype("float32")
        return (
            Spec("float32", shape),
            weights,
            bias,
            lambda s: Spec("float32", s),
            random.standard_normal(shape).astype("float32"),
        )
    scales = (random.random(filters) * 0.01 + 0.001).tolist()
    weights = Spec("int8", weights_shape, scales, [0] * filters, axis, values)
    wide = kind == "int16"
    bias = random.integers(-5000, 5000, filters).astype("int64" if wide else "int32")
    info = np.iinfo(kind)
    source = Spec(kind, shape, [0.02], [0 if wide else int(random.integers(-128, 128))])
    fed = random.integers(info.min, info.max + 1, shape).astype(kind)
    zero = 0 if wide else int(random.integers(-128, 128))
    return source, weights, bias, lambda s: Spec(kind, s, [0.5 if wide else 0.3], [zero]), fed


def _same(model: bytes, fed: Any, kind: str) -> None:
    """Integers are equal bit by bit, sums of floats about, and sums of integers to the two roundings that scale them."""
    [wanted] = answer(model, [fed], ["oplet-builtin-ops"])
    [got] = answer(model, [fed], ["oplet-builtin-ops", "oplet-compiled-ops"])
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    if kind == "float32":
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5 * max(1.0, float(np.abs(wanted).max(initial=0))))
    elif kind.startswith("hybrid"):
        # A sum times the row's scale overflows, as XNNPACK's, where the product of both scales is small enough.
        got = np.where(np.isinf(got) & (np.abs(wanted) > 1e33), np.copysign(wanted, got), got)
        largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
        np.testing.assert_allclose(got, wanted, rtol=2**-22, atol=2**-22 * largest)
    else:
        np.testing.assert_array_equal(got, wanted)


@st.composite
def small_layers(draw: st.DrawFn) -> tuple[bytes, Any, str]:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    op = draw(st.sampled_from(["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"]))
    kind = draw(st.sampled_from(["float32", "int8", "int16", "hybrid", "hybrid per channel"]))
    batch, depth = draw(st.integers(1, 2)), draw(st.integers(1, 5))
    filters = draw(st.sampled_from([1, 2, 3, 7, 8, 9, 17]))
    activation = draw(st.sampled_from(CLAMPS))
    stride_y, stride_x = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    taps = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    height, width = draw(st.integers(4, 7)), draw(st.integers(4, 7))
    padding = draw(st.sampled_from([Padding.SAME, Padding.VALID]))
    common: dict[str, Any] = {"padding": padding, "stride_h": stride_y, "stride_w": stride_x}
    if op == "TRANSPOSE_CONV":
        same = padding == Padding.SAME
        out = [n * s if same else (n - 1) * s + t for n, s, t in ((height, stride_y, taps[0]), (width, stride_x, taps[1]))]
        source, weights, bias, output, fed = _operands(
            kind, (batch, height, width, depth), (filters, *taps, depth), 0, filters, random
        )
        target = (batch, *out, filters)
        options: Any = TransposeConvOptions(**common, fused_activation_function=activation)
        inputs = [np.array(target, np.int32), weights, source, bias]
        return one_op_model(op, inputs, [output(target)], options, version=4), fed, kind
    common |= {"fused_activation_function": activation, "dilation_h_factor": 1, "dilation_w_factor": draw(st.integers(1, 2))}
    if op == "FULLY_CONNECTED":
        shape: Any = (batch * 2, depth)
        options = FullyConnectedOptions(fused_activation_function=activation, asymmetric_quantize_inputs=draw(st.booleans()))
        source, weights, bias, output, fed = _operands(kind, shape, (filters, depth), 0, filters, random)
    elif op == "CONV_2D":
        groups = draw(st.sampled_from([1, 1, 2, 3]))
        filters *= groups
        shape, options = (batch, height, 8, depth * groups), Conv2DOptions(**common)
        source, weights, bias, output, fed = _operands(kind, shape, (filters, *taps, depth), 0, filters, random)
    else:
        multiplier = draw(st.sampled_from([1, 2, 9]))
        filters, shape = depth * multiplier, (batch, height, 8, depth)
        options = DepthwiseConv2DOptions(depth_multiplier=multiplier, **common)
        source, weights, bias, output, fed = _operands(kind, shape, (1, *taps, filters), 3, filters, random)
    return one_op_model(op, [source, weights, bias], [output([1] * len(shape))], options, version=7), fed, kind


@pytest.mark.sweep
@SLOWLY
@given(case=small_layers())
def test_small_layers_equal_the_numpy_kernels(case: tuple[bytes, Any, str]) -> None:
    _same(*case)


@pytest.mark.parametrize("kind", ["float32", "int8", "int16", "hybrid"])
def test_small_transposed_convolutions_are_compiled(kind: str) -> None:
    random = np.random.default_rng(3)
    source, weights, bias, output, fed = _operands(kind, (1, 4, 5, 3), (6, 3, 3, 3), 0, 6, random)
    target = (1, 8, 10, 6)
    options = TransposeConvOptions(padding=Padding.SAME, stride_h=2, stride_w=2)
    model = one_op_model(
        "TRANSPOSE_CONV", [np.array(target, np.int32), weights, source, bias], [output(target)], options, version=4
    )
    assert is_compiled(model)
    _same(model, fed, kind)


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 7])
@pytest.mark.parametrize("hard", HARD)
def test_rows_with_numbers_at_the_limits_are_quantized_as_by_numpy(hard: float, rows: int, around: bool) -> None:
    random = np.random.default_rng(5)
    options = FullyConnectedOptions(asymmetric_quantize_inputs=around)
    source, weights, bias, output, fed = _operands("hybrid", (rows, 6), (4, 6), 0, 4, random)
    model = one_op_model("FULLY_CONNECTED", [source, weights, bias], [output((rows, 4))], options, version=9)
    assert is_compiled(model)
    fed[0, 1] = hard
    fed[-1] = hard
    _same(model, fed, "hybrid")
    fed[:] = hard
    _same(model, fed, "hybrid")


@pytest.mark.parametrize(("window", "filters"), [((2, 2), 1), ((2, 2), 8), ((3, 4), 2)])
@pytest.mark.parametrize("activation", CLAMPS[:2])
@pytest.mark.parametrize("biased", [True, False])
def test_large_transposed_convolutions_whose_windows_lie_side_by_side_are_products(
    window: tuple[int, int], filters: int, activation: ActivationFunctionType, biased: bool, agree: Callable[..., None]
) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 30, 20, 24)).astype(np.float32)
    weights = random.standard_normal((filters, *window, 24)).astype(np.float32)
    target = 2, 30 * window[0], 20 * window[1], filters
    inputs: list[Any] = [np.array(target, np.int32), weights, Spec("float32", x.shape)]
    if biased:
        inputs.append(random.standard_normal(filters).astype(np.float32))
    options = TransposeConvOptions(
        padding=Padding.SAME, stride_h=window[0], stride_w=window[1], fused_activation_function=activation
    )
    model = one_op_model("TRANSPOSE_CONV", inputs, [Spec("float32", target)], options, version=4 if biased else 3)
    assert is_compiled(model)
    for threads in (1, 2):
        agree(model, [x], threads)


@st.composite
def products(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    left, right, output = draw(
        st.sampled_from([("int8",) * 3, ("int8", "int8", "int32"), ("int16",) * 3, ("int16", "int8", "int16")])
    )
    rows, depth, columns = (draw(st.integers(1, 6)) for _ in range(3))
    adj_x, adj_y = draw(st.booleans()), draw(st.booleans())
    outer = draw(st.sampled_from([((), ()), ((3,), (3,)), ((2, 1), (3,)), ((1, 2), (2, 2))]))
    shapes = (
        (*outer[0], *((depth, rows) if adj_x else (rows, depth))),
        (*outer[1], *((columns, depth) if adj_y else (depth, columns))),
    )
    specs, fed = [], []
    for kind, shape in zip((left, right), shapes):
        info = np.iinfo(kind)
        zero = 0 if kind == "int16" or left == "int16" else draw(st.integers(-128, 127))
        specs.append(Spec(kind, shape, [0.05], [zero]))
        fed.append(random.integers(info.min, info.max + 1, shape).astype(kind))
    batches = np.broadcast_shapes(*outer)
    zero = draw(st.integers(-128, 127)) if output == "int8" else 0
    scale = draw(st.floats(0.01, 2.0) if left == "int8" else st.floats(10.0, 100.0))  # sums must not exceed 32 bits
    result = Spec(output, (*batches, rows, columns), [scale], [zero])
    return one_op_model("BATCH_MATMUL", specs, [result], BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y), version=4), fed


@SLOWLY
@given(case=products())
def test_small_products_of_integers_are_compiled_and_equal(case: tuple[bytes, list[Any]], agree: Callable[..., None]) -> None:
    assert is_compiled(case[0])
    agree(*case)


@pytest.mark.parametrize("how", ["even", "around", "plain"])
def test_rows_are_quantized_to_the_same_integers_as_by_numpy(how: str) -> None:
    random = np.random.default_rng(0)
    quantize = {"even": quantize_to_even, "around": quantize_asymmetric, "plain": quantize_symmetric}[how]
    number = {"even": TO_EVEN, "around": AROUND, "plain": SYMMETRIC}[how]
    compiled, to_bytes = ROWS_TO_FLOATS.compiled(), QUANTIZE_BYTES.compiled()
    rows = [random.standard_normal(37) * 10.0**scale for scale in (-44, -30, -3, 0, 5, 30)]
    rows += [np.zeros(37), np.abs(rows[3]), -np.abs(rows[3]), np.arange(37) - 18.0, np.arange(37) / 2, np.full(37, 3e38)]
    rows += [np.where(np.arange(37) == 5, odd, rows[3]) for odd in (np.inf, np.nan, 3.4e38)]
    for row in rows:
        values = row.astype(np.float32).reshape(1, -1)
        wanted, got, spare = (np.empty_like(values) for _ in range(3))
        scales, own, others = (np.empty(1, np.float32) for _ in range(3))
        integers, zeros = np.empty(values.shape, np.uint8), np.empty(1, np.int32)
        with np.errstate(all="ignore"):
            quantize(values, wanted, scales, spare)
            compiled(values, got, own, number)
            to_bytes(values, integers, others, zeros, number, 0, 1)
            if np.isnan(wanted).any() or np.isnan(scales).any():
                assert np.isnan(got * own).all()  # so that every output is NaN
                assert np.isnan(others).all()
                continue
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(own, scales)
        np.testing.assert_array_equal(integers.astype(np.float32) - zeros, wanted)
        np.testing.assert_array_equal(others, scales)
