"""SEGMENT_SUM and UNSORTED_SEGMENT_*."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum}


def segments(op: str, values: Any, ids: Any, count: int | None, constant: bool = True) -> Any:
    extra = [np.array(ids, np.int32), *([] if count is None else [np.array(count, np.int32)])]
    inputs = [Spec(values.dtype, values.shape), *(extra if constant else [Spec("int32", e.shape) for e in extra])]
    return run_op(one_op_model(op, inputs, [Spec(values.dtype, (1,))]), values, *([] if constant else extra))[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["float32", "int32"])
@pytest.mark.parametrize("ids", [[0, 0, 1, 2, 2], [0, 1, 2, 3, 4], [0] * 5])
def test_neighbours_are_added(ids: list[int], type: str, constant: bool) -> None:
    values = np.random.default_rng(0).integers(-9, 9, (5, 2)).astype(type)
    wanted = np.zeros((max(ids) + 1, 2), type)
    np.add.at(wanted, ids, values)
    np.testing.assert_array_equal(segments("SEGMENT_SUM", values, ids, None, constant), wanted)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ([-1000000, 0, 1], "number 0 is -1000000"),
        ([0, 0, 2147483646], "number 2 is 2147483646 after 0"),
        ([0, 1, 0], "number 2 is 0 after 1"),
        ([1, 1, 2], "number 0 is 1"),
        ([0, 1], "vector of 3 ids"),
    ],
)
def test_ids_must_rise_by_steps_of_one(ids: list[int], reason: str, constant: bool) -> None:
    with pytest.raises(OpletError, match=reason):
        segments("SEGMENT_SUM", np.zeros(3, np.float32), ids, None, constant)


@pytest.mark.parametrize(("op", "count"), [("SEGMENT_SUM", []), ("UNSORTED_SEGMENT_SUM", [np.array(1, np.int32)])])
def test_ids_are_int32(op: str, count: list[Any]) -> None:
    model = one_op_model(op, [Spec("float32", [1]), np.zeros(1, np.int64), *count], [Spec("float32", [1])])
    with pytest.raises(OpletError, match="INT64"):
        run_op(model, np.ones(1, np.float32))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["float32", "int32"])
@pytest.mark.parametrize("ids", [[3, 0, 3, -1, 0], [[3, 0], [1, 1], [0, -5], [3, 3], [0, 1]]])
@pytest.mark.parametrize("kind", UFUNCS)
def test_rows_with_the_same_id_are_combined(kind: str, ids: Any, type: str, constant: bool) -> None:
    values = np.random.default_rng(0).integers(-9, 9, (5, 2, 3)).astype(type)
    flat = np.ravel(ids)
    rows = values.reshape(flat.size, -1)
    limits = np.finfo(type) if type == "float32" else np.iinfo(type)
    wanted = np.full((4, rows.shape[1]), {"SUM": 0, "PROD": 1, "MAX": limits.min, "MIN": limits.max}[kind], type)
    for row, segment in zip(rows, flat):
        if segment >= 0:
            wanted[segment] = UFUNCS[kind](wanted[segment], row)
    got = segments(f"UNSORTED_SEGMENT_{kind}", values, ids, 4, constant)
    np.testing.assert_array_equal(got, wanted.reshape(got.shape))


def test_integers_wrap_around() -> None:
    values = np.array([2**31 - 1, 2], np.int32)
    assert segments("UNSORTED_SEGMENT_SUM", values, [0, 0], 1).tolist() == [-(2**31) + 1]
    assert segments("UNSORTED_SEGMENT_PROD", values, [0, 0], 1).tolist() == [-2]


def test_nan_is_not_the_largest() -> None:
    values = np.array([np.nan, 1, -np.inf], np.float32)
    assert segments("UNSORTED_SEGMENT_MAX", values, [0, 0, 1], 2).tolist() == [1, float(np.finfo(np.float32).min)]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("ids", "count", "reason"),
    [([0, 7, 0], 4, r"segment id 7 \(number 1\) is not below 4"), ([0, 0, 0], -1, "is -1"), ([0, 0], 1, "begins")],
)
def test_ids_must_be_below_the_number_of_segments(ids: list[int], count: int, reason: str, constant: bool) -> None:
    with pytest.raises(OpletError, match=reason):
        segments("UNSORTED_SEGMENT_SUM", np.zeros(3, np.float32), ids, count, constant)
