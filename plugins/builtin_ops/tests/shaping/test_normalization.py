"""LOG_SOFTMAX, L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION: their formulas, quantized forms, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import PrepareError
from oplet.schema.enums import ActivationFunctionType as Activation
from oplet.schema.options import L2NormOptions, LocalResponseNormalizationOptions
from oplet_testing.one_op import Spec, one_op_model, run_op

SHAPES = [(6,), (3, 4, 17), (2, 1, 1, 1), (0, 3), (40, 40)]


@pytest.mark.parametrize("shape", SHAPES)
def test_log_softmax_is_the_logarithm_of_a_distribution(shape: tuple[int, ...]) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 50).astype(np.float32)
    model = one_op_model("LOG_SOFTMAX", [Spec("float32", shape)], [Spec("float32", shape)])
    wide = x.astype(np.float64)
    highest = wide.max(-1, keepdims=True, initial=-1e9)
    expected = wide - highest - np.log(np.exp(wide - highest).sum(-1, keepdims=True))
    np.testing.assert_allclose(run_op(model, x)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_l2_normalization_gives_unit_vectors_and_keeps_zeros(shape: tuple[int, ...]) -> None:
    x = (np.random.default_rng(1).standard_normal(shape)).astype(np.float32)
    x[:1] = 0
    model = one_op_model("L2_NORMALIZATION", [Spec("float32", shape)], [Spec("float32", shape)], L2NormOptions())
    expected = x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)
    np.testing.assert_allclose(run_op(model, x)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("op", ["LOG_SOFTMAX", "L2_NORMALIZATION"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.0007, 0.02, 0.3, 4.0])
def test_quantized_results_equal_litert(litert: Any, op: str, dtype: Any, shape: tuple[int, ...], scale: float) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(2).integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    x[:1] = 4
    output = (1 / 16, info.max) if op == "LOG_SOFTMAX" else (1 / 128, info.max // 2 + 1 if info.min == 0 else 0)
    options = None if op == "LOG_SOFTMAX" else L2NormOptions()
    model = one_op_model(op, [Spec(dtype, shape, scale, 4)], [Spec(dtype, shape, *output)], options)
    np.testing.assert_array_equal(run_op(model, x)[0], litert(model, x)[0])


@pytest.mark.parametrize("columns", [4095, 4096, 8191, 100_000])
@pytest.mark.parametrize("rows", [1, 30])
def test_as_many_equal_values_as_a_sum_of_12_integer_bits_does_not_hold_count_as_4096(rows: int, columns: int) -> None:
    shape = (rows, columns)
    model = one_op_model("LOG_SOFTMAX", [Spec("int8", shape, 0.1, 0)], [Spec("int8", shape, 1 / 16, 127)])
    assert np.unique(run_op(model, np.full(shape, 3, np.int8))[0]).tolist() == [127 - round(16 * np.log(4096))]


@pytest.mark.parametrize("radius", [0, 1, 3, 50])
@pytest.mark.parametrize("beta", [0.5, 1.0, 0.75])
def test_each_channel_is_divided_by_the_power_of_its_neighbourhood(radius: int, beta: float) -> None:
    x = np.random.default_rng(3).standard_normal((2, 3, 1, 7)).astype(np.float32)
    options = LocalResponseNormalizationOptions(radius=radius, bias=1.5, alpha=0.3, beta=beta)
    model = one_op_model("LOCAL_RESPONSE_NORMALIZATION", [Spec("float32", x.shape)], [Spec("float32", x.shape)], options)
    expected = np.empty_like(x)
    for channel in range(7):
        near = x[..., max(channel - radius, 0) : channel + radius + 1]
        expected[..., channel] = x[..., channel] / (1.5 + 0.3 * (near**2).sum(-1)) ** beta
    np.testing.assert_allclose(run_op(model, x)[0], expected, rtol=1e-5)


LRN = LocalResponseNormalizationOptions(radius=1)
REFUSED: list[tuple[str, Spec, Spec, Any, str]] = [
    ("LOG_SOFTMAX", Spec("int16", [2], 1.0, 0), Spec("int16", [2], 1.0, 0), None, "INT16"),
    ("LOG_SOFTMAX", Spec("int8", [2], 1.0, 0), Spec("int8", [2], 0.5, 127), None, "scale 0.5 and zero point 127"),
    ("L2_NORMALIZATION", Spec("uint8", [2], 1.0, 0), Spec("uint8", [2], 1 / 128, 0), L2NormOptions(), "zero point 0"),
    (
        "L2_NORMALIZATION",
        Spec("float32", [2]),
        Spec("float32", [2]),
        L2NormOptions(fused_activation_function=Activation.RELU),
        "RELU",
    ),
    ("LOCAL_RESPONSE_NORMALIZATION", Spec("float32", [2, 2]), Spec("float32", [2, 2]), LRN, "4 dimensions"),
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        Spec("float32", [1, 1, 1, 2]),
        Spec("float32", [1, 1, 1, 2]),
        LocalResponseNormalizationOptions(radius=-1),
        "radius is -1",
    ),
]


@pytest.mark.parametrize(("op", "given", "made", "options", "message"), REFUSED)
def test_refuses(op: str, given: Spec, made: Spec, options: Any, message: str) -> None:
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model(op, [given], [made], options), np.zeros(given.shape, given.type))
