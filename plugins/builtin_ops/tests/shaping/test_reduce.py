"""SUM and REDUCE_*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import ReducerOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

UFUNCS = {"SUM": np.add, "REDUCE_MAX": np.maximum, "REDUCE_MIN": np.minimum, "REDUCE_PROD": np.multiply}
AXES = [[], [0], [-1], [1, 2], [2, 0], [0, 1, 2, 3], [1, 1]]


def reduce(op: str, type: str, shape: tuple[int, ...], axes: Any, keep_dims: bool = False, quantization: Any = ((), ())) -> bytes:
    of_input, of_output = quantization
    operand = axes if isinstance(axes, Spec) else np.array(axes, np.int32)
    options = ReducerOptions(keep_dims=keep_dims)
    return one_op_model(op, [Spec(type, shape, *of_input), operand], [Spec(type, (1,), *of_output)], options, version=1)


@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("type", ["float32", "int32", "int64"])
@pytest.mark.parametrize("op", UFUNCS)
def test_reductions_over_the_named_axes(op: str, type: str, axes: list[int], keep_dims: bool) -> None:
    values = np.random.default_rng(0).integers(-3, 4, (2, 3, 4, 2)).astype(type)
    wanted = UFUNCS[op].reduce(values, tuple({axis % 4 for axis in axes}), dtype=type, keepdims=keep_dims)
    (output,) = run_op(reduce(op, type, values.shape, axes, keep_dims), values)
    assert output.dtype == type
    np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize(("op", "ufunc"), [("REDUCE_ANY", np.logical_or), ("REDUCE_ALL", np.logical_and)])
def test_bools_are_joined(op: str, ufunc: np.ufunc, axes: list[int]) -> None:
    values = np.random.default_rng(0).random((2, 3, 4, 2)) < 0.5
    (output,) = run_op(reduce(op, "bool", values.shape, axes), values)
    np.testing.assert_array_equal(output, ufunc.reduce(values, tuple({axis % 4 for axis in axes})))


@pytest.mark.parametrize("type", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
def test_quantized_extremes_stay_as_they_are(op: str, type: str) -> None:
    values = np.array([[3, 100], [7, 2]], type)
    quantization = ((0.5, 0),) * 2
    assert (
        run_op(reduce(op, type, (2, 2), [1], quantization=quantization), values)[0].tolist()
        == UFUNCS[op].reduce(values, 1).tolist()
    )
    with pytest.raises(OpletError, match=r"0\.5 .* 0\.25"):
        run_op(reduce(op, type, (2, 2), [1], quantization=((0.5, 0), (0.25, 0))), values)


@pytest.mark.parametrize("scales", [(0.1, 0.1), (0.1, 0.037), (0.02, 0.9), (3e-6, 0.5)])
@pytest.mark.parametrize("axes", [[0], [1, 2], [3], [0, 1, 2, 3], []])
def test_quantized_sums_of_uint8_equal_litert_s(scales: Any, axes: list[int], litert: Callable[..., list[Any]]) -> None:
    values = np.random.default_rng(1).integers(0, 256, (2, 5, 7, 3)).astype(np.uint8)
    model = reduce("SUM", "uint8", values.shape, axes, quantization=tuple(zip(scales, (5, 17))))
    np.testing.assert_array_equal(run_op(model, values)[0], litert(model, values)[0])


@pytest.mark.parametrize("scales", [(0.1, 0.1), (0.1, 0.7), (0.02, 3.0)])
@pytest.mark.parametrize("type", ["int8", "int16"])
def test_quantized_sums_are_the_real_sums_rounded(type: str, scales: tuple[float, float]) -> None:
    values = np.random.default_rng(1).integers(-128, 128, (3, 5, 4)).astype(type)
    zeros = (0, 0) if type == "int16" else (5, -9)
    real = (values.astype(np.float64) - zeros[0]).sum(1) * scales[0] / scales[1] + zeros[1]
    limits = np.iinfo(type)
    (output,) = run_op(reduce("SUM", type, values.shape, [1], quantization=tuple(zip(scales, zeros))), values)
    assert np.abs(output - real.clip(limits.min, limits.max)).max() <= 0.501


@pytest.mark.parametrize("scales", [(0.1, 0.1), (0.03, 0.037), (0.2, 0.9), (0.007, 0.5)])
@pytest.mark.parametrize("axes", [[0], [1, 2], [2, 0], [0, 1, 2], []])
@pytest.mark.parametrize("type", ["int8", "int16"])
def test_quantized_products_equal_litert_s(type: str, axes: list[int], scales: Any, litert: Callable[..., list[Any]]) -> None:
    values = np.random.default_rng(1).integers(-128, 128, (2, 3, 4)).astype(type)
    zeros = (0, 0) if type == "int16" else (5, -9)
    model = reduce("REDUCE_PROD", type, values.shape, axes, quantization=tuple(zip(scales, zeros)))
    np.testing.assert_array_equal(run_op(model, values)[0], litert(model, values)[0])


@pytest.mark.parametrize("columns", [2, 20])
@pytest.mark.parametrize("scale", [16000.0, 16400.0, 1e10, 1e30, 0.0])
def test_products_whose_steps_have_a_large_factor_wrap_around(
    scale: float, columns: int, litert: Callable[..., list[Any]]
) -> None:
    values = np.ones((3, columns), np.int8)
    model = reduce("REDUCE_PROD", "int8", values.shape, [0], quantization=((scale, 0), (1.0, 0)))
    np.testing.assert_array_equal(run_op(model, values)[0], litert(model, values)[0])


def test_the_largest_value_is_not_nan() -> None:
    values = np.array([[np.nan, -np.inf], [1, np.nan]], np.float32)
    assert run_op(reduce("REDUCE_MAX", "float32", (2, 2), [1]), values)[0].tolist() == [-np.inf, 1]
    assert run_op(reduce("REDUCE_MIN", "float32", (2, 2), [1]), values)[0].tolist() == [-np.inf, 1]


@pytest.mark.parametrize(
    ("op", "type", "wanted"),
    [
        ("SUM", "float32", 0),
        ("SUM", "int64", 0),
        ("REDUCE_PROD", "int32", 1),
        ("REDUCE_MAX", "int8", -128),
        ("REDUCE_MIN", "float32", float(np.finfo(np.float32).max)),
        ("REDUCE_ANY", "bool", False),
        ("REDUCE_ALL", "bool", True),
    ],
)
def test_reducing_nothing_leaves_the_start(op: str, type: str, wanted: Any) -> None:
    assert run_op(reduce(op, type, (2, 0), [1]), np.zeros((2, 0), type))[0].tolist() == [wanted] * 2


@pytest.mark.parametrize("op", [*UFUNCS, "REDUCE_ANY", "REDUCE_ALL"])
def test_axes_may_arrive_at_run_time(op: str) -> None:
    type = "bool" if op in ("REDUCE_ANY", "REDUCE_ALL") else "float32"
    model = reduce(op, type, (2, 3), Spec("int32", (1,)))
    values = np.ones((2, 3), type)
    assert run_op(model, values, np.array([0], np.int32))[0].shape == (3,)
    assert run_op(model, values, np.array([-1], np.int32))[0].shape == (2,)
    with pytest.raises(OpletError, match="axis is 2"):
        run_op(model, values, np.array([2], np.int32))


@pytest.mark.parametrize(
    ("op", "type", "reason"),
    [("REDUCE_MAX", "uint32", "UINT32"), ("REDUCE_ANY", "int32", "INT32"), ("SUM", "int8", "needs a scale")],
)
def test_other_types_are_refused(op: str, type: str, reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        run_op(reduce(op, type, (2, 2), [0]), np.zeros((2, 2), type))
