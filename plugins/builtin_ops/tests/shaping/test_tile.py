"""TILE, BROADCAST_TO and BROADCAST_ARGS: values repeated, and the shapes that say how often."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def with_shape(op: str, values: np.ndarray[Any, Any], shape: object, constant: bool, type: str = "int32") -> np.ndarray[Any, Any]:
    given = np.array(shape, type)
    spec = given if constant else Spec(type, given.shape)
    model = one_op_model(op, [Spec(values.dtype, values.shape), spec], [Spec(values.dtype, (1,))], version=2)
    return run_op(model, values, *([] if constant else [given]))[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["int32", "int64"])
@pytest.mark.parametrize("times", [(1, 1, 1), (2, 3, 1), (1, 1, 4), (2, 0, 3)])
def test_tile_repeats_each_axis(times: tuple[int, ...], type: str, constant: bool) -> None:
    values = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    np.testing.assert_array_equal(with_shape("TILE", values, times, constant, type), np.tile(values, times))


@pytest.mark.parametrize("times", [(43, 7, 5), (1, 500, 9), (900, 1, 1), (1, 1, 5000)])
def test_short_rows_are_tiled_many_times(times: tuple[int, ...]) -> None:
    values = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    np.testing.assert_array_equal(with_shape("TILE", values, times, True), np.tile(values, times))


def test_strings_can_be_tiled() -> None:
    words = np.array([[b"a"], [b"bc"]], object)
    assert with_shape("TILE", words, (1, 2), True).tolist() == [[b"a", b"a"], [b"bc", b"bc"]]


@pytest.mark.parametrize(("times", "reason"), [((2, -1), r"\[2, -1\] must not be negative"), ((2,), "must hold 2 values")])
def test_tile_refuses_wrong_multiples(times: tuple[int, ...], reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        with_shape("TILE", np.zeros((2, 2), np.float32), times, True)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["bool", "int8", "float32", "int64"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 3), (4, 1, 2, 3)])
def test_broadcast_to_repeats_axes_of_length_one(shape: tuple[int, ...], type: str, constant: bool) -> None:
    values = np.array([[1], [0]], type)
    np.testing.assert_array_equal(with_shape("BROADCAST_TO", values, shape, constant), np.broadcast_to(values, shape))


@pytest.mark.parametrize("shape", [(3, 3), (2,), (4, 3)])
def test_broadcast_to_refuses_what_does_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(OpletError, match=r"\[2, 1\]\) does not broadcast to"):
        with_shape("BROADCAST_TO", np.zeros((2, 1), np.float32), shape, True)


@pytest.mark.parametrize("op", ["TILE", "BROADCAST_TO"])
def test_values_of_half_a_byte_are_refused(op: str) -> None:
    from oplet import TensorType

    model = one_op_model(op, [Spec(TensorType.INT4, (2,)), np.array([2], np.int32)], [Spec(TensorType.INT4, (2,))], version=2)
    with pytest.raises(OpletError, match="type INT4"):
        run_op(model, np.zeros(2, np.int8))


def broadcast_args(first: list[int], second: list[int], type: str = "int32") -> list[int]:
    shapes = [np.array(shape, type) for shape in (first, second)]
    model = one_op_model("BROADCAST_ARGS", [Spec(type, shapes[0].shape), shapes[1]], [Spec(type, (1,))])
    result: list[int] = run_op(model, shapes[0])[0].tolist()
    return result


@pytest.mark.parametrize("type", ["int32", "int64"])
@pytest.mark.parametrize(("first", "second"), [([2, 1, 3], [4, 1]), ([1], [5, 6]), ([7, 0], [1, 1]), ([2, 3], [2, 3])])
def test_broadcast_args_is_the_common_shape(first: list[int], second: list[int], type: str) -> None:
    assert broadcast_args(first, second, type) == list(np.broadcast_shapes(tuple(first), tuple(second)))


def test_shapes_that_do_not_meet_are_refused() -> None:
    with pytest.raises(OpletError, match=r"\[2, 3\] and \[4\] do not broadcast together"):
        broadcast_args([2, 3], [4])
