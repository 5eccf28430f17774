"""RANGE, FILL, ZEROS_LIKE and RANK: tensors made from a few numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import LimitError, OpletError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def make_range(type: str, start: float, limit: float, delta: float, constant: bool = True) -> tuple[bytes, list[Any]]:
    given = [np.array(v, type) for v in (start, limit, delta)]
    inputs = given if constant else [Spec(type, ()) for _ in given]
    return one_op_model("RANGE", inputs, [Spec(type, (1,))]), [] if constant else given


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["int32", "int64", "float32"])
@pytest.mark.parametrize("numbers", [(0, 5, 1), (3, 10, 3), (5, 0, -2), (-4, -3, 1)])
def test_ranges_stop_before_the_limit(numbers: tuple[int, ...], type: str, constant: bool) -> None:
    model, feeds = make_range(type, *numbers, constant=constant)
    np.testing.assert_array_equal(run_op(model, *feeds)[0], np.arange(*numbers, dtype=type))


def test_floats_are_added_step_by_step_as_by_litert(litert: Callable[..., list[Any]]) -> None:
    model, feeds = make_range("float32", 0.1, 2000, 0.37, constant=False)
    np.testing.assert_array_equal(run_op(model, *feeds)[0], litert(model, *feeds)[0])


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("type", "numbers"), [("int32", (0, 5, 0)), ("int32", (0, 5, -1)), ("float32", (5, 0, 1)), ("float32", (0, 5, np.nan))]
)
def test_steps_that_lead_nowhere_are_refused(type: str, numbers: tuple[float, ...], constant: bool) -> None:
    model, feeds = make_range(type, *numbers, constant=constant)
    with pytest.raises(OpletError, match="does not lead from start"):
        run_op(model, *feeds)


def test_endless_ranges_are_refused() -> None:
    with pytest.raises(OpletError, match="there are inf steps"):
        run_op(make_range("float32", 0, np.inf, 1)[0])


def fill(dims: list[int], value: Any, constant: bool = True, type: str = "int32") -> Any:
    given = np.array(dims, type)
    spec = given if constant else Spec(type, given.shape)
    model = one_op_model("FILL", [spec, np.asarray(value)], [Spec(np.asarray(value).dtype, (1,))], version=3)
    return run_op(model, *([] if constant else [given]))[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["int32", "int64"])
@pytest.mark.parametrize("value", [np.float32(1.5), np.int8(-3), np.int64(2**40), np.True_, np.array(b"word", object)])
def test_fill_repeats_one_value(value: Any, type: str, constant: bool) -> None:
    got = fill([2, 3], value, constant, type)
    assert got.dtype == np.asarray(value).dtype
    assert got.tolist() == [[np.asarray(value).item()] * 3] * 2


@pytest.mark.parametrize("constant", [True, False])
def test_fill_refuses_negative_dimensions(constant: bool) -> None:
    with pytest.raises(OpletError, match=r"\[2, -3\]"):
        fill([2, -3], np.float32(1), constant)


def test_fill_refuses_what_no_memory_holds() -> None:
    with pytest.raises(LimitError):
        fill([65535, 65535, 65535], np.float32(1))


def test_fill_keeps_the_scale() -> None:
    model = one_op_model("FILL", [np.array([2], np.int32), Spec("int8", (), 0.5, 0)], [Spec("int8", (2,), 0.25, 0)], version=3)
    with pytest.raises(OpletError, match=r"0\.5 .* 0\.25"):
        run_op(model, np.int8(1))


@pytest.mark.parametrize("type", ["float32", "int32", "int64"])
def test_zeros_like_has_shape_and_type_of_its_input(type: str) -> None:
    (output,) = run_op(one_op_model("ZEROS_LIKE", [Spec(type, (2, 3))], [Spec("int32", (1,))]), np.ones((2, 3), type))
    assert output.dtype == type
    assert output.tolist() == [[0] * 3] * 2


@pytest.mark.parametrize("shape", [(), (4,), (2, 0, 3)])
def test_rank_counts_dimensions(shape: tuple[int, ...]) -> None:
    (output,) = run_op(one_op_model("RANK", [Spec("float32", shape)], [Spec("int32", ())]), np.zeros(shape, np.float32))
    assert output.shape == ()
    assert output == len(shape)
