"""SOFTMAX: rows sum to one, integers equal LiteRT's, and what it refuses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import PrepareError
from oplet.schema.options import SoftmaxOptions
from oplet_testing.one_op import Spec, one_op_model, run_op

OUTPUTS = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}


@pytest.mark.parametrize("beta", [1.0, 0.25])
@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (3, 1), (0, 4), (2, 0)])
def test_floats_follow_the_formula_without_a_warning(shape: tuple[int, ...], beta: float) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 100).astype(np.float32)
    model = one_op_model("SOFTMAX", [Spec("float32", shape)], [Spec("float32", shape)], SoftmaxOptions(beta=beta))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run_op(model, x)[0]
    assert result.shape == shape
    if x.size:
        powers = np.exp(beta * (x.astype(np.float64) - x.max(-1, keepdims=True)))
        np.testing.assert_allclose(result, powers / powers.sum(-1, keepdims=True), rtol=1e-4, atol=1e-30)


@pytest.mark.parametrize(
    ("given", "made"), [("int8", "int8"), ("int8", "int16"), ("uint8", "uint8"), ("uint8", "int16"), ("int16", "int16")]
)
@pytest.mark.parametrize("scale", [0.001, 0.05, 0.7])
@pytest.mark.parametrize("shape", [(1, 200), (6, 1), (4, 3, 17)])
def test_integers_equal_litert(given: str, made: str, scale: float, shape: tuple[int, ...], litert: Callable[..., Any]) -> None:
    limits = np.iinfo(given)
    x = np.random.default_rng(1).integers(limits.min, limits.max, shape, endpoint=True).astype(given)
    model = one_op_model("SOFTMAX", [Spec(given, shape, scale, 0)], [Spec(made, shape, *OUTPUTS[made])], SoftmaxOptions(beta=0.8))
    np.testing.assert_array_equal(run_op(model, x)[0], litert(model, x, kernels="BUILTIN_WITHOUT_DEFAULT_DELEGATES")[0])


@pytest.mark.parametrize(
    ("given", "made", "scale", "zero_point"),
    [
        ("uint8", "uint8", 1 / 128, 0), ("uint8", "uint8", 1 / 512, 0), ("uint8", "uint8", 0.01, 7), ("uint8", "uint8", 1.0, 0),
        ("int8", "int16", 1 / 65536, -32768), ("int8", "int16", 1 / 65536, 0), ("uint8", "int16", 1e-4, -5), ("int8", "int16", 1.0, 3),
    ],
)  # fmt: skip
def test_outputs_have_their_own_scale_as_in_litert(
    given: str, made: str, scale: float, zero_point: int, litert: Callable[..., Any]
) -> None:
    x = np.random.default_rng(1).integers(0, 256, (8, 9)).astype(np.uint8).view(given)
    model = one_op_model(
        "SOFTMAX", [Spec(given, x.shape, 0.05, 0)], [Spec(made, x.shape, scale, zero_point)], SoftmaxOptions(beta=1.0)
    )
    np.testing.assert_array_equal(run_op(model, x)[0], litert(model, x, kernels=None)[0])


def test_float16_equals_litert(litert: Callable[..., Any]) -> None:
    x = (np.random.default_rng(2).standard_normal((7, 40)) * 5).astype(np.float16)
    model = one_op_model("SOFTMAX", [Spec("float16", x.shape)], [Spec("float16", x.shape)], SoftmaxOptions(beta=0.7))
    expected = litert(model, x, kernels=None)[0]
    np.testing.assert_allclose(run_op(model, x)[0].astype(float), expected.astype(float), rtol=1e-3, atol=1e-7)


def test_a_thousand_equal_values_do_not_overflow() -> None:
    # LiteRT's reference kernel aborts the process here.
    model = one_op_model(
        "SOFTMAX", [Spec("uint8", [1000], 0.1, 0)], [Spec("uint8", [1000], 1 / 256, 0)], SoftmaxOptions(beta=1.0)
    )
    assert set(run_op(model, np.full(1000, 7, np.uint8))[0].tolist()) == {0}


@pytest.mark.parametrize(("scale", "beta"), [(1e-12, 1.0), (0.0, 1.0), (1.0, 0.0), (3.6e-43, 0.5)])
@pytest.mark.parametrize(("type", "zero_point"), [("int8", -128), ("uint8", 0)])
def test_values_that_hardly_differ_share_evenly(type: str, zero_point: int, scale: float, beta: float) -> None:
    model = one_op_model(
        "SOFTMAX", [Spec(type, [2, 4], scale, 0)], [Spec(type, [2, 4], 1 / 256, zero_point)], SoftmaxOptions(beta=beta)
    )
    values = np.array([[0, 100, 7, 50], [1, 1, 1, 1]], type)
    assert run_op(model, values)[0].tolist() == [[zero_point + 64] * 4] * 2


REFUSED: list[tuple[Any, Any, float, str]] = [
    (Spec("float32", []), Spec("float32", []), 1.0, "a dimension at least"),
    (Spec("int32", [2]), Spec("int32", [2]), 1.0, "INT32"),
    (Spec("int8", [2], 1.0, 0), Spec("uint8", [2], 1 / 256, 0), 1.0, "INT8 or INT16"),
    (Spec("int8", [2], 1.0, 0), Spec("int8", [2], 1 / 256, 0), 1.0, "zero point 0; SOFTMAX gives -128"),
    (Spec("int8", [2], 1.0, 0), Spec("int8", [2], 1 / 128, -128), 1.0, "scale 0.0078125; SOFTMAX gives 1/256"),
    (Spec("int16", [2], 1.0, 4), Spec("int16", [2], 1 / 32768, 0), 1.0, "zero point 4"),
]


@pytest.mark.parametrize(("given", "made", "beta", "message"), REFUSED)
def test_refuses(given: Spec, made: Spec, beta: float, message: str) -> None:
    model = one_op_model("SOFTMAX", [given], [made], SoftmaxOptions(beta=beta))
    with pytest.raises(PrepareError, match=message):
        run_op(model, np.zeros(given.shape, given.type))
