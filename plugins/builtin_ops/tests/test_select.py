"""SELECT and SELECT_V2: which shapes fit, any type, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import PrepareError
from oplet.testing.one_op import Spec, one_op_model, run_op


def run(op: str, condition: Any, x: Any, y: Any, declared: Any = (1, 2), constant: bool = False) -> Any:
    condition = np.asarray(condition)
    model = one_op_model(
        op,
        [condition if constant else Spec("bool", condition.shape), Spec(x.dtype, x.shape), Spec(y.dtype, y.shape)],
        [Spec(x.dtype, declared)],
    )
    return run_op(model, *([] if constant else [condition]), x, y)[0]


@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int16", "int64", "uint32", "bool", "complex64", "float64"])
def test_the_condition_chooses_values_of_any_type(op: str, dtype: str, constant: bool) -> None:
    x, y = np.array([[1, 0, 1]]).astype(dtype), np.array([[0, 7, 0]]).astype(dtype)
    result = run(op, [[True, False, True]], x, y, constant=constant)
    np.testing.assert_array_equal(result, [[x[0, 0], y[0, 1], x[0, 2]]])
    assert result.dtype == x.dtype


def test_no_bit_of_what_is_not_a_number_is_lost() -> None:
    x = np.array([0x7FC01234, 0x7F812345], np.uint32).view(np.float32)
    result = run("SELECT_V2", [True, False], x, x[::-1].copy())
    assert result.view(np.uint32).tolist() == [0x7FC01234, 0x7FC01234]


def test_a_vector_chooses_slices_in_version_1_and_columns_in_version_2() -> None:
    x, y = np.arange(4.0).reshape(2, 2), np.full((2, 2), 9.0)
    assert run("SELECT", [True, False], x, y).tolist() == [[0, 1], [9, 9]]
    assert run("SELECT_V2", [True, False], x, y).tolist() == [[0, 9], [2, 9]]


@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
def test_a_scalar_condition_chooses_all(op: str) -> None:
    x, y = np.arange(4.0).reshape(2, 2), np.full((2, 2), 9.0)
    np.testing.assert_array_equal(run(op, True, x, y), x)
    np.testing.assert_array_equal(run(op, False, x, y), y)


def test_all_three_broadcast_in_version_2() -> None:
    condition, x, y = np.array([[True], [False]]), np.arange(3.0), np.full((4, 1, 1), -1.0)
    np.testing.assert_array_equal(run("SELECT_V2", condition, x, y), np.where(condition, x, y))
    assert run("SELECT_V2", np.zeros((0, 2), bool), np.ones(2), np.ones((1, 1))).shape == (0, 2)


@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
def test_single_values_keep_the_declared_rank(op: str) -> None:
    assert run(op, [True], np.array(3.0), np.array([[4.0]]), declared=(1, 1, 1)).tolist() == [[[3]]]


REFUSED: list[tuple[str, Any, Spec, Spec, str]] = [
    ("SELECT", Spec("bool", [2]), Spec("float32", [3, 2]), Spec("float32", [3, 2]), "must be a scalar"),
    ("SELECT", Spec("bool", [2]), Spec("float32", [2]), Spec("float32", [1]), "same shape"),
    ("SELECT", Spec("int8", [2]), Spec("float32", [2]), Spec("float32", [2]), "INT8"),
    ("SELECT_V2", Spec("bool", [2]), Spec("float32", [2]), Spec("int32", [2]), "same type"),
    ("SELECT_V2", Spec("bool", [2]), Spec(object, [2]), Spec(object, [2]), "STRING"),
    (
        "SELECT_V2",
        Spec("bool", [2]),
        Spec("float32", [3]),
        Spec("float32", [1]),
        r"\[2\], \[3\] and \[1\], are not broadcastable",
    ),
    ("SELECT_V2", Spec("bool", [1] * 9), Spec("float32", [2]), Spec("float32", [1]), "9 dimensions"),
]


@pytest.mark.parametrize(("op", "condition", "x", "y", "message"), REFUSED)
def test_refuses(op: str, condition: Spec, x: Spec, y: Spec, message: str) -> None:
    feeds = [np.zeros(spec.shape, spec.type) for spec in (condition, x, y)]
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model(op, [condition, x, y], [Spec(x.type, [7])]), *feeds)
