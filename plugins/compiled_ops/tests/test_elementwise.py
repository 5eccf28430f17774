"""Compiled elementwise ops, softmaxes and pools answer as the numpy ones do, whatever their shapes, options and quantization."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from tests.budgets import examples

from oplet import Interpreter, ModelBuilder, TensorType
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import (
    AddOptions,
    DivOptions,
    GeluOptions,
    LeakyReluOptions,
    MulOptions,
    Pool2DOptions,
    SoftmaxOptions,
    SubOptions,
)
from oplet_compiled_ops.elementwise import (
    ADD,
    DIVIDE,
    MULTIPLY,
    PRELU,
    SMALLER_FIRST,
    SQUARED_DIFFERENCE,
    SUBTRACT,
    SUBTRACT_FROM,
)
from oplet_compiled_ops.elementwise.flat import bind_float_pair
from oplet_compiled_ops.elementwise.plain.broadcasting import Repetition, repetition
from oplet_testing import Spec, invoke, one_op_model

SLOWLY = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
CLAMPS = st.sampled_from([ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU_N1_TO_1])
QUANTIZED = ["int8", "uint8", "int16"]
SCALES = st.floats(0.004, 0.2)
SEEDS = st.integers(0, 2**32 - 1)


def values(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    if kind == "float32":
        return (random.standard_normal(shape) * 4).astype(np.float32)
    info = np.iinfo(kind)
    return random.integers(info.min, info.max + 1, shape).astype(kind)


def spec(draw: st.DrawFn, kind: str, shape: tuple[int, ...], data: Any = None) -> Spec:
    if kind == "float32":
        return Spec(kind, shape, data=data)
    info = np.iinfo(kind)
    zero_point = 0 if kind == "int16" else draw(st.integers(info.min, info.max))
    return Spec(kind, shape, [draw(SCALES)], [zero_point], data=data)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """A model of ADD, SUB, MUL, PRELU or SQUARED_DIFFERENCE, with an operand that repeats somehow, maybe a constant."""
    of_floats = ["SQUARED_DIFFERENCE", "DIV", "MAXIMUM", "MINIMUM"]
    op = draw(st.sampled_from(["ADD", "SUB", "MUL", "PRELU", *of_floats]))
    kind = "float32" if op in of_floats else draw(st.sampled_from(["float32", *QUANTIZED]))
    random = np.random.default_rng(draw(SEEDS))
    large = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 16, 40]), min_size=1, max_size=4)))
    small = tuple(dim if draw(st.booleans()) else 1 for dim in large)[draw(st.integers(0, len(large))) :]
    shapes = [large, small] if op == "PRELU" or draw(st.booleans()) else [small, large]
    fed = [values(random, kind, shape) for shape in shapes]
    constant = draw(st.sampled_from([None, 0, 1])) if op != "PRELU" else draw(st.sampled_from([None, 1]))
    inputs = [spec(draw, kind, shape, fed[i] if i == constant else None) for i, shape in enumerate(shapes)]
    output = spec(draw, kind, large)
    if kind in QUANTIZED and op in ("ADD", "SUB"):  # the output's scale may not be too fine
        output = output._replace(scale=[max(output.scale[0], max(t.scale[0] for t in inputs) / 16)])
    classes: dict[str, Any] = {"ADD": AddOptions, "SUB": SubOptions, "MUL": MulOptions, "DIV": DivOptions}
    options = classes[op](fused_activation_function=draw(CLAMPS)) if op in classes else None
    if op in ("ADD", "SUB"):
        options.pot_scale_int16 = False
    version = {"ADD": 3, "SUB": 3, "MUL": 4}.get(op, 1)
    return one_op_model(op, inputs, [output], options, version=version), [v for i, v in enumerate(fed) if i != constant]


@SLOWLY
@given(case=pairs())
def test_pairs_agree(case: tuple[bytes, list[Any]], agree: Callable[..., None]) -> None:
    agree(*case)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_all_pairs_of_8_bit_values_agree(op: str, kind: str, agree: Callable[..., None]) -> None:
    every = np.arange(256, dtype=np.uint8).view(kind)
    x, y = np.repeat(every, 256), np.tile(every, 256)
    for scales in ((0.05, 0.0371, 0.06), (0.02, 0.02, 0.04), (0.013, 0.19, 0.21)):
        specs = [Spec(kind, x.shape, [scale], [zero]) for scale, zero in zip(scales, (3, 100, 7))]
        options = {"ADD": AddOptions(), "SUB": SubOptions(), "MUL": MulOptions()}[op]
        agree(one_op_model(op, specs[:2], specs[2:], options, version=2), [x, y])


@st.composite
def maps(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """A model of an op of one operand."""
    floats = ["LEAKY_RELU", "HARD_SWISH", "LOGISTIC", "GELU", "TANH", "SQRT", "RSQRT", "ABS", "NEG"]
    op = draw(st.sampled_from([*floats, "SOFTMAX", "LOG_SOFTMAX", "QUANTIZE", "DEQUANTIZE"]))
    shape = tuple(draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    random = np.random.default_rng(draw(SEEDS))
    kind = "float32"
    output = Spec(kind, shape)
    options: Any = None
    version = 1
    if op == "LEAKY_RELU":
        options = LeakyReluOptions(alpha=draw(st.sampled_from([0.1, 0.0, 2.0, -0.5])))
    elif op == "GELU":
        options = GeluOptions(approximate=draw(st.booleans()))
    elif op == "SOFTMAX":
        options = SoftmaxOptions(beta=draw(st.sampled_from([1.0, 0.3])))
        kind = draw(st.sampled_from(["float32", "int8", "uint8"]))
        if kind != "float32":
            output = Spec(kind, shape, [1 / 256], [-128 if kind == "int8" else 0])
            version = 2
    elif op == "LOG_SOFTMAX":
        kind = draw(st.sampled_from(["float32", "int8", "uint8"]))
        if kind != "float32":
            output = Spec(kind, shape, [1 / 16], [127 if kind == "int8" else 255])
            version = 2
    elif op == "QUANTIZE":
        output = spec(draw, draw(st.sampled_from(QUANTIZED)), shape)
    elif op == "DEQUANTIZE":
        kind = draw(st.sampled_from(QUANTIZED))
        version = 3
    fed = values(random, kind, shape)
    if op in ("SQRT", "RSQRT"):
        fed = abs(fed)
    return one_op_model(op, [spec(draw, kind, shape)], [output], options, version=version), [fed]


@SLOWLY
@given(case=maps())
def test_maps_agree(case: tuple[bytes, list[Any]], agree: Callable[..., None]) -> None:
    agree(*case)


@pytest.mark.parametrize(
    ("op", "options"),
    [("GELU", GeluOptions()), ("GELU", GeluOptions(approximate=True)), ("TANH", None), ("SQRT", None), ("RSQRT", None)],
)
def test_numbers_at_the_ends_agree(op: str, options: Any, agree: Callable[..., None]) -> None:
    ends = np.array(
        [np.inf, -np.inf, np.nan, 0, -0.0, 1e30, -1e30, 13, -13, -14, 1e-30, -1e-30, 0.625, -0.625, 9, -9], np.float32
    )
    # Among others, so that they are met by a vector as well as by what remains of a row.
    x = np.concatenate([np.linspace(-20, 20, 203, dtype=np.float32), np.tile(ends, 5)])
    agree(one_op_model(op, [Spec("float32", x.shape)], [Spec("float32", x.shape)], options, version=1), [x])


def test_roots_are_numpys_bit_for_bit_and_inverse_roots_to_two_units_in_the_last_place() -> None:
    x = np.append(np.abs(np.random.default_rng(0).standard_normal(999).astype(np.float32)) * 50, np.float32([0, np.inf, 1e-38]))
    with np.errstate(divide="ignore"):
        inverse = 1 / np.sqrt(x.astype(np.float64))
    for op, expected, units in (("SQRT", np.sqrt(x), 0), ("RSQRT", inverse, 2)):
        model = one_op_model(op, [Spec("float32", x.shape)], [Spec("float32", x.shape)])
        np.testing.assert_allclose(invoke(Interpreter(model_content=model), x)[0], expected, rtol=units * 2**-23, atol=0)


def test_halves_and_their_neighbours_are_quantized_alike(agree: Callable[..., None]) -> None:
    halves = np.arange(-300, 300, dtype=np.float32) / 2
    x = np.concatenate([halves, np.nextafter(halves, np.float32(1e9)), np.nextafter(halves, np.float32(-1e9))])
    x = np.append(x, np.array([np.inf, -np.inf, np.nan, -0.0], np.float32))
    for kind in QUANTIZED:
        output = Spec(kind, x.shape, [1.0], [0 if kind == "int16" else 5])
        agree(one_op_model("QUANTIZE", [Spec("float32", x.shape)], [output]), [x])


@pytest.mark.parametrize("op", ["LOGISTIC", "SOFTMAX", "LOG_SOFTMAX"])
def test_extremes_and_nan_agree(op: str, agree: Callable[..., None]) -> None:
    x = np.array([[1e30, -1e30, 0, 88, -88, 100, -100], [np.nan, 1, 2, 3, 4, 5, 6]], np.float32)
    options = SoftmaxOptions(beta=1.0) if op == "SOFTMAX" else None
    agree(one_op_model(op, [Spec("float32", x.shape)], [Spec("float32", x.shape)], options), [x])


@st.composite
def pools(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """A model of a pool."""
    op = draw(st.sampled_from(["MAX_POOL_2D", "AVERAGE_POOL_2D"]))
    kind = draw(st.sampled_from(["float32", *QUANTIZED]))
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    shape = (draw(st.integers(1, 2)), height, width, draw(st.sampled_from([1, 3, 17, 40])))
    padding = draw(st.sampled_from(Padding))
    reach = (12, 12) if padding == Padding.SAME else (height, width)
    options = Pool2DOptions(
        padding=padding,
        filter_height=draw(st.integers(1, reach[0])),
        filter_width=draw(st.integers(1, reach[1])),
        stride_h=draw(st.integers(1, 3)),
        stride_w=draw(st.integers(1, 3)),
        fused_activation_function=draw(CLAMPS),
    )
    quantized = spec(draw, kind, shape)
    version = 1 if kind in ("float32", "uint8") else 3
    fed = values(np.random.default_rng(draw(SEEDS)), kind, shape)
    return one_op_model(op, [quantized], [quantized], options, version=version), [fed]


@SLOWLY
@given(case=pools())
def test_pools_agree(case: tuple[bytes, list[Any]], agree: Callable[..., None]) -> None:
    agree(*case)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_maxima_keep_not_a_number_and_the_first_of_equal_zeros(size: int, agree: Callable[..., None]) -> None:
    options = Pool2DOptions(padding=Padding.SAME, filter_height=size, filter_width=size, stride_h=2, stride_w=2)
    x = np.random.default_rng(size).standard_normal((1, 7, 7, 19)).astype(np.float32)
    x[0, 3, 3, :5], x[0, 0, 0, 5], x[0, 5, 5, 6] = np.nan, 9, -9
    x[..., 7:] = np.minimum(x[..., 7:], 0) * 0  # zeros of both signs
    model = one_op_model("MAX_POOL_2D", [Spec("float32", x.shape)], [Spec("float32", (1, 4, 4, 19))], options)
    assert is_compiled(model)
    agree(model, [x])
    [found] = invoke(Interpreter(model_content=model), x)
    before = (size - 1) // 2 if size > 1 else 0  # seven rows in steps of two: `size - 1` rows of padding
    for row, column in np.ndindex(4, 4):
        top, left = 2 * row - before, 2 * column - before
        window = x[0, max(top, 0) : top + size, max(left, 0) : left + size, 7:].transpose(1, 0, 2)
        first = window.reshape(-1, 12)[0]
        np.testing.assert_array_equal(np.signbit(found[0, row, column, 7:]), np.signbit(first))


@given(large=st.lists(st.integers(1, 4), max_size=5), data=st.data())
@example(large=[2, 3], data=None)
def test_a_repetition_names_the_element_that_broadcasting_would(large: list[int], data: Any) -> None:
    small = [1, 3] if data is None else [dim if data.draw(st.booleans()) else 1 for dim in large]
    found = repetition(tuple(large), tuple(small))
    if found is None:
        return
    places = np.arange(int(np.prod(small)))
    wanted = np.broadcast_to(places.reshape(small), large).reshape(-1)
    got = [
        places[row if found.per_row else block * found.advance + column]
        for block in range(found.blocks)
        for row in range(found.rows)
        for column in range(found.columns)
    ]
    np.testing.assert_array_equal(got, wanted)


def test_more_nesting_than_three_loops_is_left_to_numpy() -> None:
    assert repetition((2, 3, 4, 5), (2, 1, 4, 1)) is None
    assert repetition((2, 3, 4, 5), (1, 1, 4, 5)) == Repetition(1, 6, 20, 0, False)


def test_compiled_kernels_serve_the_usual_types() -> None:
    from oplet_compiled_ops.ops.dequantize import DEQUANTIZE
    from oplet_compiled_ops.ops.quantize import QUANTIZE

    assert set(QUANTIZE) == set(DEQUANTIZE) == {TensorType.INT8, TensorType.UINT8, TensorType.INT16}


@pytest.mark.parametrize(
    "how",
    [
        Repetition(1, 1, 700, 0, False),
        Repetition(3, 5, 40, 0, True),
        Repetition(1, 30, 24, 0, False),
        Repetition(2, 3, 600, 600, False),
    ],
)
@pytest.mark.parametrize("op", [ADD, SUBTRACT, SUBTRACT_FROM, MULTIPLY, PRELU, SQUARED_DIFFERENCE, DIVIDE, SMALLER_FIRST])
def test_pairs_written_over_an_operand_are_the_same_bit_for_bit(op: int, how: Repetition) -> None:
    random = np.random.default_rng(op)
    x = random.standard_normal(how.blocks * how.rows * how.columns).astype(np.float32)
    x[::7] = np.nan
    y = random.standard_normal((how.blocks if how.advance else 1) * (how.rows if how.per_row else how.columns)).astype(np.float32)
    wanted, over = SimpleNamespace(data=np.empty_like(x)), SimpleNamespace(data=x.copy())
    bind_float_pair(op, SimpleNamespace(data=x), y, wanted, how, -0.5, 1.0, 1)()  # type: ignore[arg-type]
    bind_float_pair(op, over, y, over, how, -0.5, 1.0, 1)()  # type: ignore[arg-type]
    np.testing.assert_array_equal(over.data, wanted.data)


@pytest.mark.parametrize("op", ["RELU", "HARD_SWISH", "ADD", "SUB"])
def test_ops_that_write_over_what_an_op_before_them_made_answer_as_numpy_does(agree: Callable[..., None], op: str) -> None:
    shape = [1, 64, 64, 16]
    builder = ModelBuilder("two ops")
    graph = builder.add_subgraph()
    x, middle, y = (graph.add_tensor(name, np.float32, shape) for name in "xmy")
    graph.set_inputs(x)
    graph.add_operator("LEAKY_RELU", [x], [middle], LeakyReluOptions(alpha=0.5))
    graph.add_operator(op, [middle] if op in ("RELU", "HARD_SWISH") else [x, middle], [y])
    graph.set_outputs(y)
    agree(builder.to_bytes(), [np.random.default_rng(0).standard_normal(shape).astype(np.float32)], threads=2)


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_operands_that_both_repeat_agree(op: str, agree: Callable[..., None]) -> None:
    options = {"ADD": AddOptions(), "SUB": SubOptions(), "MUL": MulOptions()}[op]
    random = np.random.default_rng(0)
    for first, second in (
        ((1, 16, 1), (1, 1, 32)),
        ((5, 1), (7,)),
        ((2, 1, 3, 1), (1, 4, 1, 5)),
        ((3, 1, 5, 1, 7), (3, 2, 5, 2, 7)),
    ):
        shape = np.broadcast_shapes(first, second)
        for shapes in ((first, second), (second, first)):
            fed = [random.standard_normal(of).astype(np.float32) for of in shapes]
            specs = [Spec("float32", of) for of in (*shapes, shape)]
            agree(one_op_model(op, specs[:2], specs[2:], options), fed)
