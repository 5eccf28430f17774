from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

Array = np.ndarray[int, np.dtype[np.generic]]


def topk(values: Array, k: int, constant: bool = True, positions: str = "int32") -> tuple[Array, Array]:
    many = np.array(k, np.int32)
    model = one_op_model(
        "TOPK_V2",
        [Spec(values.dtype, values.shape), many if constant else Spec("int32", ())],
        [Spec(values.dtype, (1,)), Spec(positions, (1,))],
        version=3,
    )
    best, where = run_op(model, values, *([] if constant else [many]))
    return best, where


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("positions", ["int16", "int32"])
@pytest.mark.parametrize("type", ["float32", "int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize(("length", "k"), [(7, 3), (7, 7), (1, 1), (900, 5)])
def test_the_largest_come_first_and_of_equals_the_first(length: int, k: int, type: str, positions: str, constant: bool) -> None:
    values = np.random.default_rng(k).integers(0, 5, (2, 3, length)).astype(type)
    if values.dtype.kind != "u":
        values -= 2
    best, where = topk(values, k, constant, positions)
    wanted = np.argsort(-values.astype(np.int64), -1, kind="stable")[..., :k]
    assert where.dtype == positions
    np.testing.assert_array_equal(where, wanted)
    np.testing.assert_array_equal(best, np.take_along_axis(values, wanted, -1))


def test_the_ends_of_a_type_are_in_order() -> None:
    info = np.iinfo(np.int32)
    assert topk(np.array([0, info.min, info.max], np.int32), 3)[1].tolist() == [2, 0, 1]
    assert topk(np.array([-0.0, -np.inf, 0.0, np.inf, -1], np.float32), 5)[1].tolist() == [3, 0, 2, 4, 1]


def test_nan_comes_last() -> None:
    assert topk(np.array([np.nan, 1, -np.inf, np.nan, 2], np.float32), 5)[1].tolist() == [4, 1, 2, 0, 3]


def test_none_of_them_is_a_number_too() -> None:
    assert topk(np.zeros((2, 3), np.float32), 0)[0].shape == (2, 0)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("k", [4, -2])
def test_k_must_be_within_the_row(k: int, constant: bool) -> None:
    with pytest.raises(OpletError, match=f"k is {k}; .* beyond 3"):
        topk(np.zeros(3, np.float32), k, constant)


def test_positions_must_fit_their_type() -> None:
    with pytest.raises(OpletError, match="40000 values, whose positions"):
        topk(np.zeros(40000, np.float32), 1, positions="int16")
