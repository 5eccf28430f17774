"""QUANTIZE and DEQUANTIZE: rounding, every pair of types, channels, and what they refuse."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import TensorType
from oplet.errors import PrepareError
from oplet_testing.one_op import Spec, one_op_model, run_op


def test_halves_are_rounded_away_from_zero_and_values_saturate() -> None:
    just_below = np.nextafter(np.float32(0.5), np.float32(0))
    x = np.array([0.5, 1.5, -0.5, -2.5, just_below, 1e30, -1e30, np.nan], np.float32)
    model = one_op_model("QUANTIZE", [Spec("float32", [8])], [Spec("int8", [8], 1.0, 10)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_op(model, x)[0].tolist() == [11, 12, 9, 7, 10, 127, -128, 127]


@pytest.mark.parametrize(("type", "low", "high"), [("INT4", -8, 7), ("UINT4", 0, 15), ("INT16", -32768, 32767)])
def test_values_saturate_to_the_type(type: str, low: int, high: int) -> None:
    model = one_op_model("QUANTIZE", [Spec("float32", [3])], [Spec(TensorType[type], [3], 0.5, 0)], version=5)
    assert run_op(model, np.array([-1e6, 1, 1e6], np.float32))[0].tolist() == [low, 2, high]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("axis", [0, 1])
def test_channels_have_scales_of_their_own(dtype: Any, axis: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5)).astype(np.float32)
    count = x.shape[axis]
    scales = np.asarray(rng.uniform(0.01, 0.1, count), np.float32)
    points = np.zeros(count, int) if dtype is np.int16 else rng.integers(0, 9, count)
    across = [-1, 1] if axis == 0 else [1, -1]
    spec = Spec(dtype, x.shape, scales, points, axis)
    quantized = run_op(one_op_model("QUANTIZE", [Spec("float32", x.shape)], [spec]), x)[0]
    limits = np.iinfo(dtype)
    steps = np.round(x / scales.reshape(across)) + points.reshape(across)
    np.testing.assert_array_equal(quantized, np.clip(steps, limits.min, limits.max))
    if dtype is not np.int16:
        back = run_op(one_op_model("DEQUANTIZE", [spec], [Spec("float32", x.shape)]), quantized)[0]
        expected = (quantized.astype(np.int64) - points.reshape(across)) * scales.reshape(across)
        np.testing.assert_array_equal(back, np.asarray(expected, np.float32))


PAIRS = [(a, b) for a in ("int8", "uint8") for b in ("int8", "uint8", "int16")]
PAIRS += [("int16", "int8"), ("int16", "int16"), ("int16", "int32"), ("int32", "int8"), ("int32", "int16")]


@pytest.mark.parametrize(("given", "made"), PAIRS)
@pytest.mark.parametrize("scales", [(0.07, 0.05), (0.01, 0.01), (0.002, 0.5)])
def test_requantized_values_equal_litert(given: str, made: str, scales: tuple[float, float], litert: Callable[..., Any]) -> None:
    limits = np.iinfo(given if given != "int32" else "int16")
    x = np.arange(limits.min, limits.max + 1).astype(given) * (37 if given == "int32" else 1)
    points = [0 if name in ("int16", "int32") else 6 for name in (given, made)]
    model = one_op_model("QUANTIZE", [Spec(given, x.shape, scales[0], points[0])], [Spec(made, x.shape, scales[1], points[1])])
    np.testing.assert_array_equal(run_op(model, x)[0], litert(model, x)[0])


@pytest.mark.parametrize(("type", "scale", "point"), [("int8", 0.1, -7), ("uint8", 0.3, 128), ("int16", 0.01, 0)])
def test_dequantize_is_scale_times_distance_from_the_zero_point(type: str, scale: float, point: int) -> None:
    limits = np.iinfo(type)
    x = np.arange(limits.min, limits.max + 1).astype(type)
    model = one_op_model("DEQUANTIZE", [Spec(type, x.shape, scale, point)], [Spec("float32", x.shape)])
    expected = (np.float64(np.float32(scale)) * (x.astype(np.int64) - point)).astype(np.float32)
    np.testing.assert_array_equal(run_op(model, x)[0], expected)


def test_dequantize_widens_float16() -> None:
    x = np.array([1.5, -0.1, np.inf], np.float16)
    model = one_op_model("DEQUANTIZE", [x], [Spec("float32", [3])])
    np.testing.assert_array_equal(run_op(model)[0], x.astype(np.float32))


@pytest.mark.parametrize("type", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("scale", [0.0, 1.4e-45, 3.6e-43])
def test_a_dead_output_is_the_lowest_value_as_in_litert(type: str, scale: float, litert: Callable[..., list[Any]]) -> None:
    model = one_op_model("QUANTIZE", [Spec("float32", [5])], [Spec(type, [5], scale, 0)])
    values = np.array([1, -1, np.inf, np.nan, 1e30], np.float32)
    np.testing.assert_array_equal(run_op(model, values)[0], litert(model, values)[0])


@pytest.mark.parametrize("plugins", [["builtin_ops"], None], ids=["numpy", "compiled"])
@pytest.mark.parametrize(("type", "low", "high"), [("int8", -128, 127), ("uint8", 0, 255)])
def test_what_8_bits_cannot_hold_is_the_nearer_end_and_nan_the_upper_one_as_with_xnnpack(
    type: str, low: int, high: int, plugins: Any
) -> None:
    given = np.array([np.nan, np.inf, -np.inf, 1e38, -1e38, 3e9, -3e9, -0.0], np.float32)
    model = one_op_model("QUANTIZE", [Spec("float32", [8])], [Spec(type, [8], 0.05, 3)])
    assert run_op(model, given, plugins=plugins)[0].tolist() == [high, high, low, high, low, high, low, 3]


def test_int16_beyond_int32_is_the_lowest_value_as_in_litert(litert: Callable[..., list[Any]]) -> None:
    model = one_op_model("QUANTIZE", [Spec("float32", [6])], [Spec("int16", [6], 0.05, 0)])
    values = np.array([1e9, -1e9, np.nan, 1e8, -1e8, 7], np.float32)
    np.testing.assert_array_equal(run_op(model, values)[0], litert(model, values)[0])


REFUSED: list[tuple[str, Spec, Spec, str]] = [
    ("QUANTIZE", Spec("float32", [2]), Spec("int8", [2]), "no quantization"),
    ("QUANTIZE", Spec("float32", [2]), Spec("int32", [2], 1.0, 0), "INT32"),
    ("QUANTIZE", Spec("int32", [2], 1.0, 0), Spec("uint8", [2], 1.0, 0), "UINT8"),
    ("QUANTIZE", Spec("int16", [2], 1.0, 0), Spec("int16", [2], 1.0, 1), "zero point 1"),
    ("DEQUANTIZE", Spec("int8", [2]), Spec("float32", [2]), "no quantization"),
    ("DEQUANTIZE", Spec("int16", [2], 1.0, 2), Spec("float32", [2]), "zero point 2"),
    ("DEQUANTIZE", Spec("int64", [2]), Spec("float32", [2]), "INT64"),
]


@pytest.mark.parametrize(("op", "given", "made", "message"), REFUSED)
def test_refuses(op: str, given: Spec, made: Spec, message: str) -> None:
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model(op, [given], [made]), np.zeros(given.shape, given.type))
