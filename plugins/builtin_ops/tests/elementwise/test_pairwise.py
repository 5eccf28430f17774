"""Ops of two inputs, element by element: quotients, powers, extremes, bits, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from oplet.errors import InvokeError, PrepareError
from oplet.schema.enums import ActivationFunctionType as Activation
from oplet.schema.options import DivOptions
from oplet_testing import call_op
from oplet_testing.one_op import Spec, one_op_model, run_op

INTEGERS = ("int8", "int16", "int32")


def run(op: str, a: Any, b: Any, options: Any = None) -> Any:
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    return call_op(op, [a, b], [Spec(a.dtype, shape)], options)[0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_quotients_round_down_and_remainders_follow(dtype: str) -> None:
    lowest = np.iinfo(dtype).min
    a, b = np.array([7, -7, 7, -7, 6, lowest], dtype), np.array([2, 2, -2, -2, 3, -1], dtype)
    # The lowest number divided by -1 wraps around.
    assert run("FLOOR_DIV", a, b).tolist() == [3, -4, -4, 3, 2, lowest]
    assert run("FLOOR_MOD", a, b).tolist() == [1, 1, -1, -1, 0, 0]


def test_float_quotients_are_rounded_down_in_double_precision() -> None:
    a, b = np.array([-7, 7.5, 3e38, 1], np.float32), np.array([2, 2.5, 0.5, 0.1], np.float32)
    np.testing.assert_array_equal(run("FLOOR_DIV", a, b), [-4, 3, np.inf, 9])
    np.testing.assert_allclose(run("FLOOR_MOD", a, b), [1, 0, 0, 1 % float(np.float32(0.1))], atol=1e-6)


def test_integers_divide_towards_zero_under_an_activation() -> None:
    a, b = np.array([7, -7, 40, 2**31 - 1], np.int32), np.array([2, 2, 3, 1], np.int32)
    assert run("DIV", a, b, DivOptions()).tolist() == [3, -3, 13, 2**31 - 1]
    relu6 = DivOptions(fused_activation_function=Activation.RELU6)
    assert run("DIV", a, b, relu6).tolist() == [3, 0, 6, 6]
    assert run("DIV", a.astype(np.float32), b.astype(np.float32), relu6).tolist() == [3.5, 0, 6, 6]


@pytest.mark.parametrize(
    ("op", "dtype"), [("DIV", "int32"), ("FLOOR_DIV", "int8"), ("FLOOR_DIV", "float32"), ("FLOOR_MOD", "int64")]
)
def test_division_by_zero_is_an_error_when_it_comes(op: str, dtype: str) -> None:
    a, zero = np.array([1, 2], dtype), np.array([1, 0], dtype)
    with pytest.raises(InvokeError, match=r"Division by 0: tensor 1 .* holds 0"):
        run(op, a, zero)


def test_floats_divide_by_zero() -> None:
    result = run("DIV", np.array([1, -1, 0], np.float32), np.zeros(3, np.float32))
    np.testing.assert_array_equal(result, [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("op", ["DIV", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM"])
@pytest.mark.parametrize("shapes", [((700,), (700,)), ((40, 5, 6), (5, 1)), ((30, 8), ())])
@pytest.mark.parametrize("scale", [0.01, 0.5, 8.0])
def test_quantized_results_equal_litert(litert: Any, op: str, dtype: Any, shapes: Any, scale: float) -> None:
    if op == "SQUARED_DIFFERENCE" and dtype is not np.int8:
        return
    rng = np.random.default_rng(3)
    info = np.iinfo(dtype)
    a, b = (np.asarray(rng.integers(info.min, info.max, shape, endpoint=True)).astype(dtype) for shape in shapes)
    b = np.where(b == 3, 4, b).astype(dtype)
    specs = [Spec(dtype, a.shape, 0.05, 1), Spec(dtype, b.shape, 0.04, 3)]
    options = DivOptions(fused_activation_function=Activation.RELU) if op == "DIV" else None
    model = one_op_model(op, specs, [Spec(dtype, a.shape, scale, 2)], options)
    np.testing.assert_array_equal(run_op(model, a, b)[0], litert(model, a, b)[0])


def _multiplier(real: float) -> tuple[int, int]:
    """The 31 bits of a factor and its exponent."""
    fraction, exponent = math.frexp(real)
    fixed = math.floor(fraction * 2**31 + 0.5)
    return (fixed // 2, exponent + 1) if fixed == 2**31 else (fixed, exponent)


def _scaled(x: int, multiplier: int, exponent: int) -> int:
    """The doubled high half of a product, rounded, and divided by a power of two with a second rounding, half away from zero."""
    product = (x << max(exponent, 0)) * multiplier
    high = (product + 2**30) >> 31
    if exponent >= 0:
        return high
    sign, size = (-1, -high) if high < 0 else (1, high)
    return sign * ((size + (1 << -exponent - 1)) >> -exponent)


def _squared_difference(x: int, y: int, scales: tuple[float, float, float]) -> int:
    """tflite-micro's SQUARED_DIFFERENCE of int16, in Python's own integers."""
    first, second, out = map(float, map(np.float32, scales))
    twice = 2 * max(first, second)
    difference = _scaled(x, *_multiplier(first / twice)) - _scaled(y, *_multiplier(second / twice))
    return int(np.clip(_scaled(difference * difference, *_multiplier(twice * twice / out)), -32768, 32767))


@pytest.mark.parametrize(
    ("shapes", "constants"),
    [(((50,), (50,)), ()), (((4, 5, 6), (5, 1)), ()), (((7, 8), ()), (1,)), (((), (4, 3)), (0,)), (((2, 0), (2, 1)), ())],
)
@pytest.mark.parametrize("scales", [(1e-3, 1e-3), (1e-5, 3.0), (2.0, 0.5), (3e-5, 7e-5)])
@pytest.mark.parametrize("output", [1e-9, 1e-6, 1e-4, 0.5, 40.0, 1e5])
def test_squared_differences_of_int16_have_the_bits_of_tflite_micro(
    shapes: Any, scales: tuple[float, float], output: float, constants: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(5)
    feeds = [np.asarray(rng.integers(-32768, 32768, shape)).astype(np.int16) for shape in shapes]
    specs = [
        Spec("int16", feed.shape, scale, 0, data=feed if i in constants else None)
        for i, (feed, scale) in enumerate(zip(feeds, scales))
    ]
    shape = np.broadcast_shapes(*shapes)
    model = one_op_model("SQUARED_DIFFERENCE", specs, [Spec("int16", shape, output, 0)], version=2)
    [result] = run_op(model, *(feed for i, feed in enumerate(feeds) if i not in constants))
    pairs = zip(*(np.broadcast_to(feed, shape).ravel().tolist() for feed in feeds))
    assert result.ravel().tolist() == [_squared_difference(x, y, (*scales, output)) for x, y in pairs]


def test_powers_of_floats() -> None:
    bases = np.array([-2, 0, 3, 0.5], np.float32)
    np.testing.assert_allclose(run("POW", bases, np.array([3, 0, 0.5, -1], np.float32)), [-8, 1, 3**0.5, 2], rtol=1e-6)
    # One exponent near an integer is taken for it, so that negative bases have a power.
    np.testing.assert_allclose(run("POW", bases, np.array(3.000001, np.float32)), [-8, 0, 27, 0.125], rtol=1e-6)
    np.testing.assert_allclose(run("POW", bases[:1], np.array([[2], [0]], np.float32)), [[4], [1]])


def test_powers_of_integers_overflow_differently_for_one_exponent() -> None:
    bases = np.array([3, -2, 2, 100000], np.int32)
    assert run("POW", bases, np.array([0, 3, 30, 1], np.int32)).tolist() == [1, -8, 2**30, 100000]
    assert run("POW", bases, np.full(4, 7, np.int32)).tolist()[3] == -(2**31)
    assert run("POW", bases, np.array(7, np.int32)).tolist()[3] == np.int64(100000**7 % 2**32).astype(np.int32)
    with pytest.raises(InvokeError, match="does not support negative value for int32: an exponent is -1"):
        run("POW", bases, np.array(-1, np.int32))


@pytest.mark.parametrize(("op", "expected"), [("MAXIMUM", [2, np.nan, 1]), ("MINIMUM", [1, np.nan, 1])])
@pytest.mark.parametrize("constants", [(), (0,), (1,)])
def test_the_second_operand_wins_where_the_first_is_no_number(op: str, expected: list[float], constants: tuple[int, ...]) -> None:
    feeds = [np.array([1, 1, np.nan], np.float32), np.array([2, np.nan, 1], np.float32)]
    specs = [Spec("float32", [3], data=feed if i in constants else None) for i, feed in enumerate(feeds)]
    model = one_op_model(op, specs, [Spec("float32", [3])])
    result = run_op(model, *(feed for i, feed in enumerate(feeds) if i not in constants))[0]
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float16", "uint8", "int64"])
def test_extremes_of_other_types(dtype: str) -> None:
    a, b = np.array([[1], [5]], dtype), np.array([3, 4], dtype)
    assert run("MAXIMUM", a, b).tolist() == [[3, 4], [5, 5]]
    assert run("MINIMUM", a, b).tolist() == [[1, 1], [3, 4]]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_shifts_are_bounded_and_keep_the_sign(dtype: str) -> None:
    most = np.iinfo(dtype).max
    a, b = np.array([most, most, np.iinfo(dtype).min, 12], dtype), np.array([1, 100, 100, 2], dtype)
    signed = -1 if np.iinfo(dtype).min else 0
    assert run("RIGHT_SHIFT", a, b).tolist() == [most // 2, 0 if signed else 1, signed, 3]
    assert run("BITWISE_XOR", a, b).tolist() == (a ^ b).tolist()
    if signed:
        assert run("RIGHT_SHIFT", a, -b).tolist() == a.tolist()


def test_logic() -> None:
    a, b = np.array([[True], [False]]), np.array([True, False])
    assert run("LOGICAL_AND", a, b).tolist() == [[True, False], [False, False]]
    assert run("LOGICAL_OR", a, b).tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_angles(dtype: str) -> None:
    y, x = np.array([1, -1, 0], dtype), np.array([0, -1, -1], dtype)
    np.testing.assert_allclose(run("ATAN2", y, x), [np.pi / 2, -3 * np.pi / 4, np.pi], rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_add_n_adds_all(dtype: str) -> None:
    terms = [np.array([i, -i], dtype) for i in range(1, 5)]
    model = one_op_model("ADD_N", [Spec(dtype, [2]) for _ in terms], [Spec(dtype, [2])])
    assert run_op(model, *terms)[0].tolist() == [10, -10]


REFUSED: list[tuple[str, list[Spec], Spec, str]] = [
    ("DIV", [Spec("int64", [2]), Spec("int64", [2])], Spec("int64", [2]), "INT64"),
    ("DIV", [Spec("int8", [2]), Spec("int8", [2])], Spec("int8", [2]), "no quantization"),
    ("FLOOR_DIV", [Spec("uint8", [2]), Spec("uint8", [2])], Spec("uint8", [2]), "UINT8"),
    ("FLOOR_MOD", [Spec("float32", [2]), Spec("int32", [2])], Spec("float32", [2]), "same type"),
    ("POW", [Spec("int64", [2]), Spec("int64", [2])], Spec("int64", [2]), "INT64"),
    ("MAXIMUM", [Spec("float32", [2]), Spec("float32", [3])], Spec("float32", [3]), r"\[2\] and \[3\], are not broadcastable"),
    ("MINIMUM", [Spec("uint32", [2]), Spec("uint32", [2])], Spec("uint32", [2]), "UINT32"),
    ("SQUARED_DIFFERENCE", [Spec("int8", [2], 1.0, 0)] * 2, Spec("int8", [2], 1e-6, 0), "too fine"),
    ("SQUARED_DIFFERENCE", [Spec("int16", [2], 1.0, 3)] * 2, Spec("int16", [2], 1.0, 0), "zero point 3"),
    ("SQUARED_DIFFERENCE", [Spec("int16", [2])] * 2, Spec("int16", [2], 1.0, 0), "no quantization"),
    ("LOGICAL_AND", [Spec("int32", [2])] * 2, Spec("int32", [2]), "INT32"),
    ("BITWISE_XOR", [Spec("int64", [2])] * 2, Spec("int64", [2]), "INT64"),
    ("RIGHT_SHIFT", [Spec("float32", [2])] * 2, Spec("float32", [2]), "FLOAT32"),
    ("ATAN2", [Spec("float32", [2]), Spec("float32", [1])], Spec("float32", [2]), "same shape"),
    ("ADD_N", [Spec("float32", [2])], Spec("float32", [2]), "1 inputs"),
    ("ADD_N", [Spec("float32", [2]), Spec("float32", [1])], Spec("float32", [2]), "same shape"),
    ("ADD_N", [Spec("int64", [2])] * 2, Spec("int64", [2]), "INT64"),
]


@pytest.mark.parametrize(("op", "inputs", "output", "message"), REFUSED)
def test_refuses(op: str, inputs: list[Spec], output: Spec, message: str) -> None:
    feeds = [np.zeros(spec.shape, spec.type) for spec in inputs]
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model(op, inputs, [output]), *feeds)
