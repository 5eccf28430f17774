"""RELU, RELU6, LEAKY_RELU, PRELU, HARD_SWISH, LOGISTIC and TANH: their formulas, every quantized value, what they refuse."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, ModelBuilder
from oplet.errors import InvokeError, PrepareError
from oplet.schema.options import LeakyReluOptions
from oplet_builtin_ops.arithmetic import sigmoid_table
from oplet_testing.one_op import Spec, invoke, one_op_model, run_op

LEAKY = LeakyReluOptions(alpha=0.1)
FORMULAS: dict[str, Any] = {
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "LEAKY_RELU": lambda x: np.where(x >= 0, x, x * 0.1),
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x.astype(np.float64))),
    "TANH": np.tanh,
}


def options(op: str) -> Any:
    return LEAKY if op == "LEAKY_RELU" else None


@pytest.mark.parametrize("op", FORMULAS)
@pytest.mark.parametrize("shape", [(3, 67), (), (0, 2)])
def test_floats_follow_the_formula_without_a_warning(op: str, shape: tuple[int, ...]) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 30).astype(np.float32)
    model = one_op_model(op, [Spec("float32", shape)], [Spec("float32", shape)], options(op))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run_op(model, x)[0]
    np.testing.assert_allclose(result, FORMULAS[op](x), rtol=2e-6, atol=1e-30)


@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
@pytest.mark.parametrize("type", ["float16", "bfloat16"])
def test_short_floats_are_rounded_once(op: str, type: str) -> None:
    dtype = np.dtype(type) if type == "float16" else pytest.importorskip("ml_dtypes").bfloat16
    x = np.arange(-12, 12, 0.17).astype(dtype)
    model = one_op_model(op, [Spec(dtype, x.shape)], [Spec(dtype, x.shape)])
    expected = FORMULAS[op](x.astype(np.float64))
    result = run_op(model, x)[0].astype(np.float64)
    np.testing.assert_allclose(
        result, expected.astype(dtype).astype(np.float64), rtol=1e-3 if type == "float16" else 8e-3, atol=1e-7
    )


@pytest.mark.parametrize("op", ["RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH"])
def test_extreme_floats(op: str) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1e38, -1e38], np.float32)
    model = one_op_model(op, [Spec("float32", [5])], [Spec("float32", [5])], options(op))
    with np.errstate(over="ignore"):
        expected = FORMULAS[op](x)
    np.testing.assert_allclose(run_op(model, x)[0], expected, rtol=1e-6, atol=1e-37)


def test_a_leaky_relu_of_slope_zero_keeps_infinity() -> None:
    model = one_op_model("LEAKY_RELU", [Spec("float32", [2])], [Spec("float32", [2])], LeakyReluOptions(alpha=0.0))
    with np.errstate(invalid="ignore"):
        assert run_op(model, np.array([np.inf, -2], np.float32))[0].tolist() == [np.inf, 0]


@pytest.mark.parametrize("alpha", [-0.5, 0.3, 1.7])
def test_a_leaky_relu_may_have_any_slope(alpha: float) -> None:
    x = np.array([-4, 0, 5], np.float32)
    model = one_op_model("LEAKY_RELU", [Spec("float32", [3])], [Spec("float32", [3])], LeakyReluOptions(alpha=alpha))
    np.testing.assert_allclose(run_op(model, x)[0], [-4 * alpha, 0, 5], rtol=1e-6)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("highest", [0.9, 2.0])
@pytest.mark.parametrize("shape", [(8,), (1, 1, 8), (5, 6, 8)])
def test_prelu_scales_what_is_below_zero(constant: bool, highest: float, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 5, 6, 8)).astype(np.float32)
    alpha = rng.uniform(-1, highest, shape).astype(np.float32)
    alpha.flat[0] = highest
    model = one_op_model(
        "PRELU", [Spec("float32", x.shape), alpha if constant else Spec("float32", shape)], [Spec("float32", x.shape)]
    )
    feeds = [x] if constant else [x, alpha]
    np.testing.assert_array_equal(run_op(model, *feeds)[0], np.where(x >= 0, x, x * alpha))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("op", FORMULAS)
@pytest.mark.parametrize("scale", [0.003, 0.02, 0.0625, 2.0**-11])
def test_every_quantized_value_equals_litert(op: str, dtype: Any, scale: float, litert: Callable[..., Any]) -> None:
    if op == "HARD_SWISH" and dtype is np.int16:
        pytest.skip("HARD_SWISH takes no int16")
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1).astype(dtype)
    symmetric = dtype is np.int16
    given = scale, 0 if symmetric else 3
    made = {"LOGISTIC": (1 / 256, info.min), "TANH": (1 / 128, 0)}.get(op, (scale * 1.3, 5))
    if symmetric:
        made = 2.0**-15 if op in ("LOGISTIC", "TANH") else made[0], 0
    model = one_op_model(op, [Spec(dtype, x.shape, *given)], [Spec(dtype, x.shape, *made)], options(op))
    np.testing.assert_array_equal(run_op(model, x)[0], litert(model, x)[0])


def test_int16_nodes_of_equal_scales_have_one_table(monkeypatch: pytest.MonkeyPatch, litert: Callable[..., Any]) -> None:
    made: list[Any] = []
    compute = sigmoid_table.tanh_int16
    monkeypatch.setattr(
        sigmoid_table, "tanh_int16", lambda values, scaling: made.append((values[0], scaling)) or compute(values, scaling)
    )
    builder = ModelBuilder("scales")
    graph = builder.add_subgraph()
    inputs = [graph.add_tensor(f"x{scale}", np.int16, [9], scale=scale, zero_point=0) for scale in (2.0**-11, 2.0**-12)]
    outputs = [graph.add_tensor(f"y{number}", np.int16, [9], scale=2.0**-15, zero_point=0) for number in range(4)]
    for number, output in enumerate(outputs):
        graph.add_operator("TANH", [inputs[number % 2]], [output])
    graph.set_inputs(*inputs)
    graph.set_outputs(*outputs)
    model, x = builder.to_bytes(), np.arange(-32000, 32001, 8000).astype(np.int16)
    np.testing.assert_array_equal(run_op(model, x, x), litert(model, x, x))
    assert len(made) == len(set(made)) > 0
    assert len({scaling for _, scaling in made}) == len(inputs)


@pytest.mark.parametrize(("dtype", "alpha_type"), [(np.int8, np.int8), (np.uint8, np.uint8), (np.int16, np.int8)])
@pytest.mark.parametrize("constant", [False, True])
def test_quantized_prelu_equals_litert(dtype: Any, alpha_type: Any, constant: bool, litert: Callable[..., Any]) -> None:
    rng = np.random.default_rng(3)
    x, alpha = (rng.integers(np.iinfo(t).min, np.iinfo(t).max, s).astype(t) for t, s in ((dtype, (4, 90, 7)), (alpha_type, (7,))))
    point = 0 if dtype is np.int16 else 9
    slope = Spec(alpha_type, alpha.shape, 0.01, 4, data=alpha if constant else None)
    model = one_op_model("PRELU", [Spec(dtype, x.shape, 0.05, point), slope], [Spec(dtype, x.shape, 0.04, point)])
    feeds = [x] if constant else [x, alpha]
    np.testing.assert_array_equal(run_op(model, *feeds)[0], litert(model, *feeds)[0])


REFUSED: list[tuple[str, list[Spec], Spec, str]] = [
    ("RELU", [Spec("int32", [2])], Spec("int32", [2]), "INT32"),
    ("RELU", [Spec("int8", [2], 1.0, 0)], Spec("uint8", [2], 1.0, 0), "same type"),
    ("RELU6", [Spec("int8", [2])], Spec("int8", [2], 1.0, 0), "no quantization"),
    ("RELU6", [Spec("int16", [2], 1.0, 0)], Spec("int16", [2], 1.0, 7), "zero point 7"),
    ("HARD_SWISH", [Spec("int8", [2], 1.0, 0)], Spec("int8", [2], 0.001, 0), "scale 0.001, below 1/128"),
    ("GELU", [Spec("int8", [2], [1.0, 2.0], [0, 0])], Spec("int8", [2], 1.0, 0), "a scale for each slice"),
    ("TANH", [Spec("int8", [2], 1.0, 0)], Spec("int8", [2], [1.0, 2.0], [0, 0]), "a scale for each slice"),
    ("LOGISTIC", [Spec("int16", [2], 1.0, 0)], Spec("int16", [2], 0.1, 0), "1/32768"),
    ("TANH", [Spec("int16", [2], 1.0, 0)], Spec("int16", [2], 2.0**-14, 0), "scale 6.1"),
    ("PRELU", [Spec("float32", [2]), Spec("float32", [3])], Spec("float32", [2]), "not broadcastable"),
    ("PRELU", [Spec("uint8", [2], 1.0, 0), Spec("int8", [2], 1.0, 0)], Spec("uint8", [2], 1.0, 0), "takes UINT8"),
    ("TANH", [Spec("float32", [2]), Spec("float32", [2])], Spec("float32", [2]), "2 inputs"),
]


@pytest.mark.parametrize(("op", "inputs", "output", "message"), REFUSED)
def test_refuses(op: str, inputs: list[Spec], output: Spec, message: str) -> None:
    feeds = [np.zeros(spec.shape, spec.type) for spec in inputs]
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model(op, inputs, [output], options(op)), *feeds)


@pytest.mark.parametrize("zero_point", [-128, 0, 5])
@pytest.mark.parametrize("scale", [1 / 64, 0.5, 1.0, 1e-6])
@pytest.mark.parametrize("type", ["int8", "uint8"])
def test_logistic_gives_every_scale_of_8_bits_as_litert_does(
    type: str, scale: float, zero_point: int, litert: Callable[..., Any]
) -> None:
    every = np.arange(256, dtype=np.uint8).view(type)
    shift = 128 if type == "uint8" else 0
    model = one_op_model("LOGISTIC", [Spec(type, [256], 0.05, 3)], [Spec(type, [256], scale, zero_point + shift)])
    np.testing.assert_array_equal(run_op(model, every)[0], litert(model, every, kernels=None)[0])


@pytest.mark.parametrize("type", ["float32", "float16"])
@pytest.mark.parametrize(
    ("shape", "slopes"),
    [((1,), (3,)), ((2, 1), (2, 3)), ((3,), (2, 3)), ((), (3,)), ((2, 3), (1, 1, 3)), ((1, 4, 4, 1), (1, 1, 3))],
)
def test_floats_take_the_shape_of_larger_slopes_as_in_litert(
    shape: tuple[int, ...], slopes: tuple[int, ...], type: str, litert: Callable[..., Any]
) -> None:
    alpha = np.linspace(-0.5, 1.5, int(np.prod(slopes))).astype(type).reshape(slopes)
    x = np.linspace(-2, 1, int(np.prod(shape))).astype(type).reshape(shape)
    model = one_op_model("PRELU", [Spec(type, shape), Spec(type, slopes, data=alpha)], [Spec(type, shape)])
    mine, theirs = run_op(model, x)[0], litert(model, x, kernels=None)[0]
    assert mine.shape == theirs.shape
    np.testing.assert_allclose(mine, theirs, rtol=1e-3 if type == "float16" else 1e-6)


def test_slopes_with_more_rows_than_an_integer_input_are_refused_in_the_run() -> None:
    rows = [Spec("int8", [1, 3], 1.0, 0), Spec("int8", [2, 3], 1.0, 0)]
    interpreter = Interpreter(model_content=one_op_model("PRELU", rows, [Spec("int8", [1, 3], 1.0, 0)]))
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=r"to \[2, 3\]"):
        interpreter.invoke()
    assert (
        invoke(interpreter, np.full((2, 3), -1, np.int8), np.full((2, 3), 2, np.int8), resize=True)[0].tolist() == [[-2] * 3] * 2
    )
