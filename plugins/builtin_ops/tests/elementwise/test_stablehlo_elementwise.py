"""StableHLO ops that work value by value: against LiteRT where it has them, against their definition elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import StablehloComparisonDirection, StablehloComparisonType
from oplet.schema.stablehlo_options import StablehloCompareOptions
from oplet_testing import call_op, one_op_model, run_op
from oplet_testing.one_op import Spec

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
#: LiteRT's kernels; its reference resolver has no AND and no SHIFT_LEFT.
PLAIN = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
MOST = float(np.finfo(np.float32).max)


def run(op: str, *arrays: Any, result: Any = None, options: Any = None) -> np.ndarray:
    inputs = [np.asarray(array) for array in arrays]
    type = result or inputs[0].dtype
    shape = max((array.shape for array in inputs), key=len)
    return call_op(f"STABLEHLO_{op}", inputs, [Spec(type, shape)], options)[0]


def extremes(type: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of values that matter."""
    if type == "bool":
        values = np.array([False, True])
    elif np.dtype(type).kind == "f":
        values = np.array([0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 6e4], type)
    else:
        limits = np.iinfo(type)
        values = np.array([limits.min, limits.min + 1, 0, 1, 2, 7, limits.max - 1, limits.max], type)
    a, b = np.meshgrid(values, values)
    return a, b


@pytest.mark.parametrize("type", [*INTEGERS, "bool", "float16", "float32", "float64"])
@pytest.mark.parametrize("op", ["ADD", "MULTIPLY", "MAXIMUM", "MINIMUM", "AND"])
def test_equals_litert(op: str, type: str, litert: Callable[..., Any]) -> None:
    a, b = extremes(type)
    model = one_op_model(f"STABLEHLO_{op}", [Spec(type, a.shape), Spec(type, a.shape)], [Spec(type, a.shape)])
    if op == "AND" and type.startswith("float"):
        with pytest.raises(OpletError, match="this op takes INT8"):
            run_op(model, a, b)
        return
    np.testing.assert_array_equal(run_op(model, a, b)[0], litert(model, a, b, kernels=PLAIN)[0])


@pytest.mark.parametrize("type", ["int8", "int16", "int32"])
def test_shift_left_equals_litert(type: str, litert: Callable[..., Any]) -> None:
    values, amounts = np.meshgrid(np.array([1, -1, 77, -128], type), np.array([0, 1, 6, 7, 8, 15, 16, 31], type))
    model = one_op_model("STABLEHLO_SHIFT_LEFT", [Spec(type, values.shape)] * 2, [Spec(type, values.shape)])
    np.testing.assert_array_equal(run_op(model, values, amounts)[0], litert(model, values, amounts, kernels=PLAIN)[0])


def test_bits_shifted_out_are_gone() -> None:
    np.testing.assert_array_equal(
        run("SHIFT_LEFT", np.full(4, 5, np.int32), np.array([31, 32, 40, -1], np.int32)), [-(2**31), 0, 0, 0]
    )


@pytest.mark.parametrize(
    ("op", "rule"),
    [
        ("ABS", np.abs),
        ("CBRT", np.cbrt),
        ("COSINE", np.cos),
        ("EXPONENTIAL", np.exp),
        ("FLOOR", np.floor),
        ("LOG", np.log),
        ("LOGISTIC", lambda x: 1 / (1 + np.exp(-x))),
        ("NEGATE", np.negative),
        ("RSQRT", lambda x: 1 / np.sqrt(x)),
        ("TANH", np.tanh),
    ],
)
@pytest.mark.parametrize("type", ["float32", "float16", "float64", "bfloat16"])
def test_functions_of_one_value(op: str, rule: Any, type: str) -> None:
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), type)) if type == "bfloat16" else np.dtype(type)
    values = np.array([0.5, 2.0, 3.25, 0.125, 100.0]).astype(dtype)
    tolerance = {2: 1e-2 if type == "bfloat16" else 2e-3, 4: 1e-6, 8: 1e-14}[dtype.itemsize]
    got = run(op, values)
    assert got.dtype == dtype
    with np.errstate(over="ignore"):
        want = rule(values.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=tolerance)


@pytest.mark.parametrize("op", ["COSINE", "EXPONENTIAL", "LOG", "NEGATE", "TANH", "RSQRT", "LOGISTIC", "ABS"])
def test_functions_of_a_complex_value(op: str) -> None:
    value = np.array([0.5 + 0.25j], np.complex64)
    want = {
        "RSQRT": 1 / np.sqrt(value),
        "LOGISTIC": 1 / (1 + np.exp(-value)),
        "COSINE": np.cos(value),
        "EXPONENTIAL": np.exp(value),
        "NEGATE": -value,
        "ABS": np.abs(value),
    }.get(op)
    want = want if want is not None else getattr(np, op.lower())(value)
    np.testing.assert_allclose(run(op, value, result=want.dtype), want, rtol=1e-6)


def test_integers_divide_towards_zero() -> None:
    a, b = np.array([7, -7, 7, -7, 5, -128], np.int8), np.array([2, 2, -2, -2, 0, -1], np.int8)
    np.testing.assert_array_equal(run("DIVIDE", a, b), [3, -3, -3, 3, -1, -128])
    np.testing.assert_array_equal(run("REMAINDER", a, b), [1, -1, 1, -1, 5, 0])


def test_integers_to_a_power() -> None:
    a, b = np.array([3, -2, 2, 1, -1, -1, 0, 0], np.int32), np.array([4, 3, -1, -5, -5, -4, 0, -1], np.int32)
    np.testing.assert_array_equal(run("POWER", a, b), [81, -8, 0, 1, -1, 1, 1, 0])


def test_subtract_or_clamp_select() -> None:
    a, b = np.array([5, -100, 3], np.int8), np.array([3, 100, 4], np.int8)
    np.testing.assert_array_equal(run("SUBTRACT", a, b), [2, 56, -1])
    np.testing.assert_array_equal(run("OR", a, b), a | b)
    np.testing.assert_array_equal(run("CLAMP", np.int8(0), a, np.int8(4), result="int8"), [4, 0, 3])
    np.testing.assert_array_equal(run("CLAMP", b, a, b, result="int8"), b)
    np.testing.assert_array_equal(run("SELECT", np.array([True, False, True]), a, b, result="int8"), [5, 100, 3])
    np.testing.assert_array_equal(run("SELECT", np.False_, a, b, result="int8"), b)


@pytest.mark.parametrize("direction", list(StablehloComparisonDirection))
def test_compare(direction: Any) -> None:
    a, b = extremes("float32")
    rule = {"EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less}
    want = rule[direction.name[-2:]](a, b)
    options = StablehloCompareOptions(comparison_direction=direction)
    np.testing.assert_array_equal(run("COMPARE", a, b, result="bool", options=options), want)


@pytest.mark.parametrize("type", ["float16", "float32", "float64"])
def test_the_total_order_has_a_place_for_everything(type: str) -> None:
    ascending = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], type)
    options = StablehloCompareOptions(
        comparison_direction=StablehloComparisonDirection.STABLEHLO_COMPARISON_DIRECTION_LT,
        compare_type=StablehloComparisonType.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER,
    )
    assert run("COMPARE", ascending[:-1], ascending[1:], result="bool", options=options).all()
    assert not run("COMPARE", ascending[1:], ascending[:-1], result="bool", options=options).any()


@pytest.mark.parametrize(
    ("source", "result", "want"),
    [
        (np.array([1.9, -1.9, 300, -300, np.nan, np.inf], np.float32), "int8", [1, -1, 127, -128, 0, 127]),
        (np.array([1.9, -1.9, MOST, -MOST], np.float32), "int64", [1, -1, 2**63 - 1, -(2**63)]),
        (np.array([-5, 3.7, MOST], np.float32), "uint64", [0, 3, 2**64 - 1]),
        (np.array([300, -1], np.int32), "uint8", [44, 255]),
        (np.array([0, 2, -1], np.int32), "bool", [False, True, True]),
        (np.array([True, False]), "float32", [1, 0]),
        (np.array([1.5 + 2j]), "float32", [1.5]),
        (np.array([2, 3], np.int16), "complex64", [2, 3]),
    ],
)
def test_convert(source: Any, result: str, want: Any) -> None:
    got = run("CONVERT", source, result=result)
    assert got.dtype == result
    np.testing.assert_array_equal(got, np.array(want, result))


@pytest.mark.parametrize(
    ("op", "arrays", "message"),
    [
        ("ADD", [np.zeros(2, np.int8), np.zeros(3, np.int8)], "must have the same shape"),
        ("ADD", [np.zeros(2, np.int8), np.zeros(2, np.int16)], "must have the same type"),
        ("ADD", [np.zeros(2, np.complex64)] * 2, "is of type COMPLEX64"),
        ("SHIFT_LEFT", [np.zeros(2, np.int64)] * 2, "is of type INT64"),
        ("LOG", [np.zeros(2, np.int32)], "is of type INT32"),
    ],
)
def test_refuses(op: str, arrays: Any, message: str) -> None:
    with pytest.raises(OpletError, match=message):
        run(op, *arrays)


def test_ops_without_a_litert_kernel_refuse_scales() -> None:
    spec = Spec("int8", (2,), scale=0.5, zero_point=0)
    with pytest.raises(OpletError, match="is quantized"):
        run_op(one_op_model("STABLEHLO_SUBTRACT", [spec, spec], [spec]), np.zeros(2, np.int8), np.zeros(2, np.int8))
