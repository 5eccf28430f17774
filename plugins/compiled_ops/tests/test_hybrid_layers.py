"""Layers of float activations and integer weights answer as the numpy ones do: bit by bit where both add integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from tests.budgets import examples

from oplet import Interpreter, OpResolverType, TensorType
from oplet.builder import BlockwiseQuantization, ModelBuilder, QuantizationParameters
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Conv2DOptions, FullyConnectedOptions
from oplet_compiled_ops.convolution import hybrid
from oplet_compiled_ops.library.levels import has_byte_products
from oplet_testing import Spec, one_op_model

CLAMPS = [ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU6]
SLOWLY = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
MOST = {TensorType.INT8: 127, TensorType.INT4: 7, TensorType.INT2: 1}
pytestmark = pytest.mark.skipif(not has_byte_products(), reason="the processor has no products of bytes")


def weights_of(random: np.random.Generator, kind: TensorType, shape: tuple[int, ...], channels: int | None) -> Spec:
    most = MOST[kind]
    scales = random.uniform(0.001, 0.02, channels or 1).astype("float32")
    data = random.integers(-most, most + 1, shape).astype("int8")
    return Spec(kind, shape, scales.tolist(), [0] * len(scales), 0, data)


def activations(random: np.random.Generator, shape: tuple[int, ...]) -> Any:
    values = (random.standard_normal(shape) * 10.0 ** random.integers(-3, 4)).astype("float32")
    kind = random.integers(5)
    return np.abs(values) if kind == 0 else -np.abs(values) if kind == 1 else np.zeros_like(values) if kind == 2 else values


@st.composite
def layers(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """A one-op model of a layer with float activations and integer weights, and its input."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, channels = draw(st.sampled_from([1, 2, 3, 4, 5, 9, 31])), draw(st.sampled_from([3, 8, 20, 33, 64, 130]))
    filters = draw(st.sampled_from([1, 15, 16, 40, 64, 81, 150]))
    activation, per_channel = draw(st.sampled_from(CLAMPS)), draw(st.booleans())
    bias = random.standard_normal(filters).astype("float32") if draw(st.booleans()) else None
    if draw(st.booleans()):
        weights = weights_of(random, draw(st.sampled_from(list(MOST))), (filters, channels), filters if per_channel else None)
        options: Any = FullyConnectedOptions(
            fused_activation_function=activation, asymmetric_quantize_inputs=draw(st.booleans()), keep_num_dims=True
        )
        values = activations(random, (rows, channels))
        outputs = [Spec("float32", (rows, filters))]
        return one_op_model("FULLY_CONNECTED", [Spec("float32", values.shape), weights, bias], outputs, options), [values]
    taps = draw(st.sampled_from([(1, 1), (3, 3), (2, 5)]))
    weights = weights_of(random, draw(st.sampled_from([TensorType.INT8, TensorType.INT4])), (filters, *taps, channels), filters)
    options = Conv2DOptions(
        padding=draw(st.sampled_from([Padding.SAME, Padding.VALID])),
        stride_h=draw(st.integers(1, 2)),
        stride_w=draw(st.integers(1, 2)),
        dilation_h_factor=draw(st.integers(1, 2)),
        fused_activation_function=activation,
    )
    values = activations(random, (draw(st.integers(1, 3)), draw(st.integers(5, 11)), draw(st.integers(5, 11)), channels))
    model = one_op_model("CONV_2D", [Spec("float32", values.shape), weights, bias], [Spec("float32", (1, 1, 1, 1))], options)
    return model, [values]


def outputs(model: bytes, values: list[Any], plugins: list[str], threads: int = 1, own: bool = False) -> Any:
    """The answer of the second run, with the numbers of LiteRT's own kernels if `own`, else with XNNPACK's."""
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if own else OpResolverType.AUTO
    interpreter = Interpreter(model_content=model, plugins=plugins, num_threads=threads, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(detail["index"], value)
    for _ in range(2):  # the first run leaves its traces in memory
        interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def nearly_the_same(found: Any, wanted: Any) -> None:
    """Two roundings apart, at most: XNNPACK multiplies a sum with two scales, one after the other, and numpy with their product."""
    largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
    np.testing.assert_allclose(found, wanted, rtol=2**-22, atol=2**-22 * largest)


NUMPY, COMPILED = ["oplet-builtin-ops"], ["oplet-builtin-ops", "oplet-compiled-ops"]


@pytest.mark.sweep
@given(case=layers())
@SLOWLY
def test_sums_of_bytes_are_those_of_numpy_bit_by_bit_with_the_numbers_of_litert_s_own_kernels(
    case: tuple[bytes, list[Any]],
) -> None:
    np.testing.assert_array_equal(outputs(*case, COMPILED, own=True), outputs(*case, NUMPY, own=True))


@given(case=layers())
@SLOWLY
def test_sums_of_bytes_are_those_of_numpy_but_for_the_order_of_factors(case: tuple[bytes, list[Any]]) -> None:
    nearly_the_same(outputs(*case, COMPILED), outputs(*case, NUMPY))


@given(case=layers())
@SLOWLY
def test_threads_change_nothing(case: tuple[bytes, list[Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hybrid, "_WORTH_BYTES", 1)
        patch.setattr(hybrid, "_WORTH_COPYING", 1)
        found = outputs(*case, COMPILED, threads=3)
    np.testing.assert_array_equal(found, outputs(*case, COMPILED))


@pytest.mark.parametrize("depth", [2048, 9000])
def test_sums_that_a_float_does_not_hold_are_rounded_once(depth: int) -> None:
    random = np.random.default_rng(depth)
    weights = Spec(
        "int8", (40, depth), [0.01], [0], 0, np.full((40, depth), 127, np.int8) - (np.arange(depth) % 3).astype(np.int8)
    )
    model = one_op_model(
        "FULLY_CONNECTED", [Spec("float32", (3, depth)), weights], [Spec("float32", (3, 40))], FullyConnectedOptions()
    )
    values = [random.uniform(0.5, 1, (3, depth)).astype("float32")]
    for own in (True, False):
        nearly_the_same(outputs(model, values, COMPILED, own=own), outputs(model, values, NUMPY, own=own))


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_rows_that_cannot_be_quantized_are_no_numbers_and_leave_others_alone(asymmetric: bool, value: float) -> None:
    random = np.random.default_rng(1)
    weights = weights_of(random, TensorType.INT8, (70, 64), 70)
    options = FullyConnectedOptions(asymmetric_quantize_inputs=asymmetric)
    model = one_op_model("FULLY_CONNECTED", [Spec("float32", (3, 64)), weights], [Spec("float32", (3, 70))], options)
    rows = random.standard_normal((3, 64)).astype("float32")
    rows[1, 7] = value
    rows[1, 8] = -3e38
    nearly_the_same(outputs(model, [rows], COMPILED), outputs(model, [rows], NUMPY))


def blockwise(random: np.random.Generator, rows: int, units: int, depth: int, size: int, bias: bool) -> bytes:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", "float32", [rows, depth])
    scales = graph.add_tensor(
        "scales", "float16", [units, depth // size], data=random.uniform(0.001, 0.1, (units, depth // size)).astype("float16")
    )
    details = BlockwiseQuantization(scales=scales, zero_points=-1, block_size=size)
    weights = graph.add_tensor(
        "weights",
        TensorType.INT4,
        [units, depth],
        data=random.integers(-8, 8, (units, depth)).astype("int8"),
        quantization=QuantizationParameters(details=details),
    )
    added = graph.add_tensor("bias", "float32", [units], data=random.standard_normal(units).astype("float32")) if bias else None
    y = graph.add_tensor("y", "float32", [rows, units])
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator("FULLY_CONNECTED", [x, weights, added], [y], FullyConnectedOptions(keep_num_dims=True))
    return builder.to_bytes()


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
@pytest.mark.parametrize(
    ("units", "depth", "size"), [(40, 64, 32), (1, 32, 32), (130, 256, 128), (64, 192, 64), (17, 2080, 2080)]
)
@pytest.mark.parametrize("threads", [1, 3])
def test_weights_in_blocks_agree(rows: int, units: int, depth: int, size: int, threads: int) -> None:
    random = np.random.default_rng(units)
    model = blockwise(random, rows, units, depth, size, bool(units % 2))
    values = [(random.standard_normal((rows, depth)) * 10.0 ** random.integers(-2, 3, (rows, 1))).astype("float32")]
    wanted = outputs(model, values, NUMPY)
    got = outputs(model, values, COMPILED, threads)
    largest = np.abs(wanted).max(axis=1, keepdims=True)
    np.testing.assert_allclose(got / largest, wanted / largest, rtol=0, atol=2e-6)


@pytest.mark.parametrize("rows", [1, 40])
def test_weights_in_blocks_are_compiled(rows: int) -> None:
    assert is_compiled(blockwise(np.random.default_rng(0), rows, 64, 64, 32, False))
