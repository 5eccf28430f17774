"""GATHER_ND, SCATTER_ND and SPARSE_TO_DENSE: values picked from, or put at, positions in several dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_testing import call_op
from oplet_testing.one_op import Spec

Array = np.ndarray[Any, Any]
VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(op: str, operands: list[Array], constant: list[bool], type: Any) -> Array:
    inputs = [Spec(a.dtype, a.shape, data=a) if fixed else a for a, fixed in zip(operands, constant)]
    return call_op(op, inputs, [Spec(type, (1,))])[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["int16", "int32", "int64"])
@pytest.mark.parametrize("at", [[[1], [0], [1]], [[[1, 2], [0, 0]]], [1, 2, 3], [[0, 1, 3]]])
def test_gather_nd_picks_slices(at: object, type: str, constant: bool) -> None:
    indices = np.array(at, type)
    wanted = VALUES[tuple(np.moveaxis(indices, -1, 0).astype(int))]
    np.testing.assert_array_equal(run("GATHER_ND", [VALUES, indices], [False, constant], "float32"), wanted)


def test_strings_can_be_gathered_by_position() -> None:
    words = np.array([[b"a", b"bc"], [b"", b"d"]], object)
    assert run("GATHER_ND", [words, np.array([[1, 1], [0, 1]], np.int32)], [False, True], "object").tolist() == [b"d", b"bc"]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["float32", "int8", "uint8", "int32", "int64"])
def test_scatter_nd_adds_what_meets(type: str, constant: bool) -> None:
    at = np.array([[1, 2], [0, 0], [1, 2]], np.int32)
    updates = np.array([[1, 2], [3, 4], [100, 120]], type)
    wanted = np.zeros((2, 3, 2), type)
    np.add.at(wanted, (at[:, 0], at[:, 1]), updates)
    got = run("SCATTER_ND", [at, updates, np.array(wanted.shape, np.int32)], [constant, False, constant], type)
    np.testing.assert_array_equal(got, wanted)


def test_scattered_integers_wrap_around() -> None:
    at, updates = np.array([[0], [0]], np.int32), np.array([100, 100], np.int8)
    assert run("SCATTER_ND", [at, updates, np.array([1], np.int32)], [False] * 3, "int8").tolist() == [-56]


def test_scattered_bools_are_joined_by_or() -> None:
    at, updates = np.array([[0], [0], [2]], np.int32), np.array([True, True, False])
    assert run("SCATTER_ND", [at, updates, np.array([3], np.int32)], [False] * 3, "bool").tolist() == [True, False, False]


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("places", [1, 2, 7, 60])
@pytest.mark.parametrize("type", ["float32", "int8", "bool"])
def test_however_many_updates_share_a_place_all_are_added(type: str, places: int, width: int) -> None:
    random = np.random.default_rng(places)
    at = random.integers(0, places, (50, 1)).astype(np.int32)
    updates = random.integers(0, 4, (50, width)).astype(type)
    wanted = np.zeros((places, width), type)
    np.add.at(wanted, at[:, 0], updates)
    got = run("SCATTER_ND", [at, updates, np.array(wanted.shape, np.int32)], [False] * 3, type)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("index", [4, 10**8, -1, -(10**8)])
@pytest.mark.parametrize("op", ["GATHER_ND", "SCATTER_ND", "SPARSE_TO_DENSE"])
def test_positions_outside_are_refused(op: str, index: int, constant: bool) -> None:
    at, row = np.array([[0], [index]], np.int32), np.zeros(2, np.float32)
    operands = {
        "GATHER_ND": [np.zeros(4, np.float32), at],
        "SCATTER_ND": [at, row, np.array([4], np.int32)],
        "SPARSE_TO_DENSE": [at, np.array([4], np.int32), row, np.zeros((), np.float32)],
    }[op]
    with pytest.raises(OpletError, match=rf"index \[{index}\] \(number 1\) is outside the shape \[4\]"):
        run(op, operands, [constant and operand is at for operand in operands], "float32")


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("at", "shape", "values", "wanted"),
    [
        ([[0, 1], [1, 0]], [2, 2], [5, 6], [[9, 5], [6, 9]]),
        ([[0, 1], [0, 1]], [1, 2], [5, 6], [[9, 6]]),
        ([2, 0], [3], 5, [5, 9, 5]),
        (1, [2], 5, [9, 5]),
    ],
)
def test_sparse_to_dense_fills_the_rest(at: object, shape: object, values: object, wanted: object, constant: bool) -> None:
    operands = [np.array(at, np.int64), np.array(shape, np.int32), np.array(values, np.int8), np.array(9, np.int8)]
    assert run("SPARSE_TO_DENSE", operands, [False, constant, False, True], "int8").tolist() == wanted


@pytest.mark.parametrize(
    ("op", "operands", "reason"),
    [
        ("GATHER_ND", [np.zeros(3, np.float32), np.zeros((1, 2), np.int32)], "2 axes, .* has only 1"),
        ("GATHER_ND", [np.zeros((0, 2), np.float32), np.zeros((1, 1), np.int32)], "is empty"),
        ("SCATTER_ND", [np.zeros((2, 1), np.int32), np.zeros((2, 5), np.float32), np.array([4, 3], np.int32)], r"shape \[2, 3\]"),
        ("SCATTER_ND", [np.zeros((2, 2), np.int32), np.zeros(2, np.float32), np.array([4], np.int32)], "2 axes, the shape"),
        ("SCATTER_ND", [np.zeros((2, 1), np.int64), np.zeros(2, np.float32), np.array([4], np.int64)], "INT64"),
        (
            "SPARSE_TO_DENSE",
            [np.zeros((2, 1), np.int32), np.array([4], np.int32), np.zeros(3, np.int32), np.zeros((), np.int32)],
            "one for each of 2 positions",
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused(op: str, operands: list[Array], reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        run(op, operands, [False] * len(operands), operands[-1].dtype)
