"""Ops of one input, element by element: their formulas, every quantized value, what they refuse."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from oplet.errors import InvokeError, PrepareError
from oplet.schema.options import FakeQuantOptions, GeluOptions
from oplet_testing.one_op import Spec, one_op_model, run_op

_erfc = np.vectorize(math.erfc, otypes=[np.float64])
EXACT, APPROXIMATE = GeluOptions(approximate=False), GeluOptions(approximate=True)
FORMULAS: list[tuple[str, Any, Any]] = [
    ("ABS", np.abs, None),
    ("NEG", np.negative, None),
    ("EXP", np.exp, None),
    ("LOG", np.log, None),
    ("SQRT", np.sqrt, None),
    ("RSQRT", lambda x: 1 / np.sqrt(x), None),
    ("SQUARE", np.square, None),
    ("SIN", np.sin, None),
    ("COS", np.cos, None),
    ("CEIL", np.ceil, None),
    ("FLOOR", np.floor, None),
    ("ROUND", np.rint, None),
    ("SIGN", np.sign, None),
    ("ELU", lambda x: np.where(x < 0, np.expm1(x), x), None),
    ("RELU_N1_TO_1", lambda x: np.clip(x, -1, 1), None),
    ("RELU_0_TO_1", lambda x: np.clip(x, 0, 1), None),
    ("GELU", lambda x: 0.5 * x * _erfc(-x / math.sqrt(2)), EXACT),
    ("GELU", lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), APPROXIMATE),
]


@pytest.mark.parametrize(("op", "formula", "options"), FORMULAS)
@pytest.mark.parametrize("shape", [(3, 67), (), (0, 2), (17000,)])
def test_floats_follow_the_formula_without_a_warning(op: str, formula: Any, options: Any, shape: tuple[int, ...]) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 4).astype(np.float32)
    model = one_op_model(op, [Spec("float32", shape)], [Spec("float32", shape)], options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run_op(model, x)[0]
    with np.errstate(all="ignore"):
        expected = formula(x.astype(np.float64))
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=4e-7)


def test_the_tail_of_gelu_keeps_its_digits() -> None:
    x = np.array([-12, -7, -4, 0, 30, np.inf], np.float32)
    model = one_op_model("GELU", [Spec("float32", [6])], [Spec("float32", [6])], EXACT)
    expected = [0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.tolist()]
    np.testing.assert_allclose(run_op(model, x)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("type", ["float16", "bfloat16"])
@pytest.mark.parametrize(("op", "formula", "options"), FORMULAS)
def test_short_floats_are_rounded_once(op: str, formula: Any, options: Any, type: str) -> None:
    taken = ("NEG", "FLOOR", "ROUND")
    dtype = np.dtype(type) if type == "float16" else pytest.importorskip("ml_dtypes").bfloat16
    x = np.arange(-4, 4, 0.17).astype(dtype)
    model = one_op_model(op, [Spec(dtype, x.shape)], [Spec(dtype, x.shape)], options)
    if (type == "bfloat16" and op not in taken) or op in ("RELU_0_TO_1", "SIGN"):
        with pytest.raises(PrepareError, match=type.upper()):
            run_op(model, x)
        return
    # GELU rounds after each of its steps, as LiteRT does.
    tolerance = 4e-3 if op == "GELU" else 1e-3
    with np.errstate(all="ignore"):
        expected = formula(x.astype(np.float64)).astype(dtype).astype(np.float64)
    np.testing.assert_allclose(run_op(model, x)[0].astype(np.float64), expected, rtol=tolerance, atol=tolerance)


QUANTIZED = {
    (np.int8, np.int16): [(op, None) for op in ("ABS", "NEG", "EXP", "LOG", "SQRT", "RSQRT")],
    (np.int8, np.uint8): [("RELU_N1_TO_1", None), ("RELU_0_TO_1", None)],
    (np.int8, np.uint8, np.int16): [("GELU", EXACT), ("GELU", APPROXIMATE)],
}


@pytest.mark.parametrize(
    ("op", "options", "dtype"), [(*op, dtype) for dtypes, ops in QUANTIZED.items() for op in ops for dtype in dtypes]
)
@pytest.mark.parametrize("scale", [0.0004, 0.003, 0.05, 1.5])
def test_every_quantized_value_equals_litert(litert: Any, op: str, options: Any, dtype: Any, scale: float) -> None:
    symmetric = dtype is np.int16
    zero_point = 0 if symmetric else 3
    info = np.iinfo(dtype)
    x = np.arange(zero_point if "SQRT" in op else info.min, info.max + 1).astype(dtype)
    output = Spec(dtype, x.shape, scale * 1.3, 0 if symmetric else 9)
    model = one_op_model(op, [Spec(dtype, x.shape, scale, zero_point)], [output], options)
    np.testing.assert_array_equal(run_op(model, x)[0], litert(model, x)[0])


def test_quantized_elu_rounds_the_function() -> None:
    x = np.arange(-128, 128).astype(np.int8)
    model = one_op_model("ELU", [Spec("int8", [256], 0.05, 3)], [Spec("int8", [256], 0.04, -5)])
    reals = (x - 3.0) * 0.05
    expected = np.clip(np.rint(np.where(reals < 0, np.expm1(reals), reals) / 0.04) - 5, -128, 127)
    assert np.abs(run_op(model, x)[0] - expected).max() <= 1


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_plain_integers_wrap_around(dtype: Any) -> None:
    lowest = np.iinfo(dtype).min
    x = np.array([lowest, -7, 0, 7], dtype)
    negated = one_op_model("NEG", [Spec(dtype, [4])], [Spec(dtype, [4])])
    assert run_op(negated, x)[0].tolist() == [lowest, 7, 0, -7]
    if dtype in (np.int16, np.int32):
        magnitude = one_op_model("ABS", [Spec(dtype, [4])], [Spec(dtype, [4])])
        assert run_op(magnitude, x)[0].tolist() == [lowest, 7, 0, 7]


def test_neg_gives_the_type_of_its_input() -> None:
    model = one_op_model("NEG", [Spec("int32", [2])], [Spec("float32", [2])])
    result = run_op(model, np.array([1, -2], np.int32))[0]
    assert result.dtype == np.int32
    assert result.tolist() == [-1, 2]


def test_sign_of_what_has_none() -> None:
    model = one_op_model("SIGN", [Spec("float32", [4])], [Spec("float32", [4])])
    np.testing.assert_array_equal(run_op(model, np.array([-0.0, np.nan, np.inf, -3], np.float32))[0], [0, np.nan, 1, -1])


def test_logical_not() -> None:
    model = one_op_model("LOGICAL_NOT", [Spec("bool", [2])], [Spec("bool", [2])])
    assert run_op(model, np.array([True, False]))[0].tolist() == [False, True]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(("op", "expected"), [("REAL", [3, 0]), ("IMAG", [-4, 2]), ("COMPLEX_ABS", [5, 2])])
def test_parts_of_complex_numbers(op: str, expected: list[float], dtype: Any) -> None:
    real = np.float32 if dtype is np.complex64 else np.float64
    model = one_op_model(op, [Spec(dtype, [2])], [Spec(real, [2])])
    result = run_op(model, np.array([3 - 4j, 2j], dtype))[0]
    assert result.dtype == real
    np.testing.assert_allclose(result, expected)


def test_fake_quant_keeps_zero_and_rounds_to_steps() -> None:
    # 3 steps from -1 to 2 are 1 apart.
    options = FakeQuantOptions(min=-1.2, max=1.8, num_bits=2)
    model = one_op_model("FAKE_QUANT", [Spec("float32", [5])], [Spec("float32", [5])], options)
    np.testing.assert_allclose(run_op(model, np.array([-9, -0.4, 0, 0.6, 9], np.float32))[0], [-1, 0, 0, 1, 2])


REFUSED: list[tuple[str, Spec, Spec, Any, str]] = [
    ("ABS", Spec("uint8", [2], 1.0, 0), Spec("uint8", [2], 1.0, 0), None, "UINT8"),
    ("ABS", Spec("int8", [2]), Spec("int8", [2]), None, "no quantization"),
    ("LOG", Spec("int16", [2]), Spec("int16", [2]), None, "must be quantized"),
    ("LOG", Spec("int16", [2], 1.0, 4), Spec("int16", [2], 1.0, 0), None, "zero point 4"),
    ("EXP", Spec("int32", [2]), Spec("int32", [2]), None, "INT32"),
    ("SIN", Spec("float32", [2]), Spec("float16", [2]), None, "same type"),
    ("CEIL", Spec("float64", [2]), Spec("float64", [2]), None, "FLOAT64"),
    ("SIGN", Spec("int64", [2]), Spec("int64", [2]), None, "INT64"),
    ("LOGICAL_NOT", Spec("int8", [2]), Spec("int8", [2]), None, "INT8"),
    ("REAL", Spec("float32", [2]), Spec("float32", [2]), None, "COMPLEX64"),
    ("IMAG", Spec("complex64", [2]), Spec("float64", [2]), None, "FLOAT64"),
    ("RELU_N1_TO_1", Spec("int16", [2], 1.0, 0), Spec("int16", [2], 1.0, 0), None, "INT16"),
    ("FAKE_QUANT", Spec("float32", [2]), Spec("float32", [2]), FakeQuantOptions(min=0, max=0, num_bits=8), "0 to 0 is empty"),
    ("FAKE_QUANT", Spec("float32", [2]), Spec("float32", [2]), FakeQuantOptions(min=0, max=1, num_bits=99), "num_bits is 99"),
    (
        "FAKE_QUANT",
        Spec("float32", [2]),
        Spec("float32", [2]),
        FakeQuantOptions(min=0, max=1, num_bits=8, narrow_range=True),
        "narrow_range",
    ),
]


@pytest.mark.parametrize(("op", "given", "made", "options", "message"), REFUSED)
def test_refuses(op: str, given: Spec, made: Spec, options: Any, message: str) -> None:
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model(op, [given], [made], options), np.zeros(given.shape, given.type))


@pytest.mark.parametrize("op", ["SQRT", "RSQRT"])
def test_roots_of_negative_quantized_values_are_an_error_when_they_come(op: str) -> None:
    model = one_op_model(op, [Spec("int8", [2], 1.0, 5)], [Spec("int8", [2], 1.0, 0)])
    run_op(model, np.array([5, 9], np.int8))
    with pytest.raises(InvokeError, match="holds 4, below its zero point 5"):
        run_op(model, np.array([9, 4], np.int8))
