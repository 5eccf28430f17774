from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import ReducerOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def mean(type: str, shape: tuple[int, ...], axes: Any, keep_dims: bool = False, quantization: Any = ((), ())) -> bytes:
    of_input, of_output = quantization
    operand = axes if isinstance(axes, Spec) else np.array(axes, np.int32)
    return one_op_model(
        "MEAN",
        [Spec(type, shape, *of_input), operand],
        [Spec(type, (1,), *of_output)],
        ReducerOptions(keep_dims=keep_dims),
        version=2,
    )


@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize("axes", [[], [0], [-1], [1, 2], [2, 1, -3], [0, 2], [0, 1, 2, 3], [1, 1], [0, 3]])
def test_mean_over_the_named_axes(axes: list[int], keep_dims: bool) -> None:
    values = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    wanted = values.mean(tuple({axis % 4 for axis in axes}), keepdims=keep_dims)
    (output,) = run_op(mean("float32", values.shape, axes, keep_dims), values)
    assert output.shape == wanted.shape
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("type", ["int32", "int64"])
def test_integer_means_are_cut_towards_zero(type: str) -> None:
    values = np.array([[1, 2], [-1, -2]], type)
    assert run_op(mean(type, (2, 2), [1]), values)[0].tolist() == [1, -1]


@pytest.mark.parametrize("type", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("scales", [(0.1, 0.1), (0.1, 0.037), (0.02, 0.9), (3e-6, 0.5)])
@pytest.mark.parametrize("axes", [[0], [1, 2], [3], [0, 1, 2, 3], []])
def test_quantized_means_equal_litert_s(
    type: str, scales: tuple[float, float], axes: list[int], litert: Callable[..., list[Any]]
) -> None:
    values = np.random.default_rng(1).integers(-128, 256, (2, 5, 7, 3)).astype(type)
    zeros = (0, 0) if type == "int16" else (5, 17)
    model = mean(type, values.shape, axes, quantization=tuple(zip(scales, zeros)))
    np.testing.assert_array_equal(run_op(model, values)[0], litert(model, values)[0])


@pytest.mark.parametrize(("type", "wanted"), [("float32", np.nan), ("int32", 0)])
def test_the_mean_of_nothing(type: str, wanted: float) -> None:
    np.testing.assert_array_equal(run_op(mean(type, (2, 0), [1]), np.zeros((2, 0), type))[0], [wanted, wanted])


def test_axes_may_arrive_at_run_time() -> None:
    model = mean("float32", (2, 2), Spec("int32", (1,)))
    values = np.array([[1, 2], [3, 4]], np.float32)
    assert run_op(model, values, np.array([0], np.int32))[0].tolist() == [2, 3]
    assert run_op(model, values, np.array([-1], np.int32))[0].tolist() == [1.5, 3.5]
    with pytest.raises(OpletError, match="axis is 2"):
        run_op(model, values, np.array([2], np.int32))


def test_an_axis_that_is_not_there_is_refused() -> None:
    with pytest.raises(OpletError, match="axis is 17"):
        run_op(mean("float32", (2, 2), [17]), np.zeros((2, 2), np.float32))


def test_a_quantized_mean_needs_scales() -> None:
    with pytest.raises(OpletError, match="needs a scale"):
        run_op(mean("int8", (2, 2), [0]), np.zeros((2, 2), np.int8))
