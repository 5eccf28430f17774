"""RaggedRange, RaggedGather and RaggedTensorToTensor: TensorFlow's results, and damaged row splits refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from plugins.text_ops.tests.pieces import OneOp, strings

from oplet.errors import OpletError

Array = np.ndarray[Any, Any]


def splits(*values: int, type: str = "int64") -> Array:
    return np.array(values, type)


def ranges(*bounds: Any, type: str) -> list[list[Any]]:
    op = OneOp("RaggedRange", {"T": 2, "Tsplits": 4}, ["int64", type])
    ends, values = op(*(np.array(each, type) for each in bounds))
    return [values[begin:end].tolist() for begin, end in itertools.pairwise(ends)]


def test_ranges_go_up_and_down() -> None:
    assert ranges([0, 5, 8, 3], [3, 5, 2, 9], [1, 1, -2, 4], type="int32") == [[0, 1, 2], [], [8, 6, 4], [3, 7]]
    assert ranges([0, 3], [2, 1], 1, type="int64") == [[0, 1], []]
    assert ranges(0, 3, 2, type="int64") == [[0, 2]]


def test_ranges_of_floats_add_up_step_by_step() -> None:
    # TensorFlow adds the step each time; the tenth value is not 0.9 rounded.
    [row] = ranges([0.0], [1.0], [0.1], type="float32")
    assert len(row) == 10
    assert row[9] == 0.9000000953674316
    assert ranges([0.0, 2.0], [1.0, -1.0], [0.4, -1.5], type="float64") == [[0.0, 0.4, 0.8], [2.0, 0.5]]


def test_ranges_reach_over_all_of_int64() -> None:
    least, most = -(2**63), 2**63 - 1
    assert ranges([least], [most], [2**62], type="int64") == [[least, -(2**62), 0, 2**62]]
    assert ranges([most], [least], [least], type="int64") == [[most, -1]]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (([0], [3], [0]), "a step is 0"),
        (([0, 0, 0, 0], [2**31 - 1] * 4, [1] * 4), "row splits are INT32, which ends at 2147483647"),
        (([0, 1], [2, 3, 4], [1]), "all vectors must have as many"),
        (([[0]], [[2]], [[1]]), "must be a vector or a scalar"),
    ],
)
def test_ranges_that_cannot_be_are_refused(bounds: Any, message: str) -> None:
    op = OneOp("RaggedRange", {}, ["int32", "int32"])
    with pytest.raises(OpletError, match=message):
        op(*(np.array(each, np.int32) for each in bounds))


def test_ranges_of_no_numbers_are_refused() -> None:
    op = OneOp("RaggedRange", {}, ["int64", "float32"])
    for bad in (np.inf, np.nan):
        with pytest.raises(OpletError, match="infinite or no number"):
            op(*(np.array(each, np.float32) for each in ([0], [bad], [1])))


def test_rows_are_gathered_with_their_inner_rows() -> None:
    op = OneOp("RaggedGather", {"PARAMS_RAGGED_RANK": 2, "OUTPUT_RAGGED_RANK": 2}, ["int64", "int64", "object"])
    outer, inner, values = op(splits(0, 2, 2, 3), splits(0, 1, 3, 4), strings(b"a", b"b", b"c", b"d"), np.array([2, 0, 1, 0]))
    assert outer.tolist() == [0, 1, 3, 3, 5]
    assert inner.tolist() == [0, 1, 2, 4, 5, 7]
    assert values.tolist() == [b"d", b"a", b"b", b"c", b"a", b"b", b"c"]


def test_the_shape_of_the_numbers_becomes_rows() -> None:
    op = OneOp("RaggedGather", {}, ["int32", "int32", "float32"])
    outer, inner, values = op(splits(0, 2, 3, type="int32"), np.float32([1, 2, 3]), np.array([[1, 0], [1, 1]], np.int32))
    assert (outer.tolist(), inner.tolist(), values.tolist()) == ([0, 2, 4], [0, 1, 3, 4, 5], [3, 1, 2, 3, 3])


def test_one_number_gathers_one_row() -> None:
    inner, values = OneOp("RaggedGather", {}, ["int64", "int32"])(
        splits(0, 2, 3), splits(0, 1, 3, 4), np.array([5, 6, 7, 8], np.int32), np.array(0)
    )
    assert (inner.tolist(), values.tolist()) == ([0, 1, 3], [5, 6, 7])


@pytest.mark.parametrize(
    ("ends", "indices", "message"),
    [
        ([0, 2, 3], [2], "asks for row 2 of 2"),
        ([0, 2, 3], [-1], "asks for row -1 of 2"),
        ([0, 2, 4], [0], "must have row splits that never fall and lie within 0 and 3"),
        ([0, 3, 2], [0], "must have row splits that never fall"),
        ([-1, 2, 3], [0], "must have row splits"),
        ([], [0], "must have row splits"),
    ],
)
def test_rows_that_are_not_there_are_not_gathered(ends: list[int], indices: list[int], message: str) -> None:
    with pytest.raises(OpletError, match=message):
        OneOp("RaggedGather", {}, ["int64", "int32"])(splits(*ends), np.arange(3, dtype=np.int32), np.array(indices))


def dense(kinds: list[str], shape: Any, values: Any, default: Any, *partitions: Any) -> Any:
    values = np.asarray(values) if not isinstance(values, np.ndarray) else values
    op = OneOp("RaggedTensorToTensor", {"row_partition_types": kinds}, [values.dtype.name])
    default = strings(default).reshape(()) if values.dtype == object else np.array(default, values.dtype)
    [answer] = op(np.array(shape, np.int64), values, default, *(np.array(each, np.int64) for each in partitions))
    return answer.tolist()


def test_short_rows_are_filled_up_and_long_ones_cut_off() -> None:
    values = np.int32([1, 2, 3, 4])
    assert dense(["ROW_SPLITS"], -1, values, 0, [0, 1, 1, 4]) == [[1, 0, 0], [0, 0, 0], [2, 3, 4]]
    assert dense(["ROW_SPLITS"], [-1, 2], values, 9, [0, 1, 1, 4]) == [[1, 9], [9, 9], [2, 3]]
    assert dense(["ROW_SPLITS"], [2, -1], values, 9, [0, 1, 1, 4]) == [[1, 9, 9], [9, 9, 9]]
    assert dense(["ROW_SPLITS"], [4, 1], values, 9, [0, 1, 1, 4]) == [[1], [9], [2], [9]]


def test_rows_may_be_ragged_more_than_once() -> None:
    kinds, values = ["ROW_SPLITS", "ROW_SPLITS"], strings(b"a", b"b", b"c")
    assert dense(kinds, -1, values, b"", [0, 2, 3], [0, 1, 1, 3]) == [[[b"a", b""], [b"", b""]], [[b"b", b"c"], [b"", b""]]]
    assert dense(kinds, [-1, 1, 1], values, b"-", [0, 2, 3], [0, 1, 1, 3]) == [[[b"a"]], [[b"b"]]]


def test_rows_may_be_given_by_the_row_of_each_value() -> None:
    values = np.float32([1, 2, 3])
    assert dense(["FIRST_DIM_SIZE", "VALUE_ROWIDS"], -1, values, 0, 4, [0, 2, 2]) == [[1, 0], [0, 0], [2, 3], [0, 0]]
    kinds = ["FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"]
    assert dense(kinds, -1, values, 0, 2, [0, 1], [0, 1, 1]) == [[[1, 0]], [[2, 3]]]
    assert dense(["ROW_SPLITS", "VALUE_ROWIDS"], -1, values, 0, [0, 3, 3], [0, 2, 2]) == [
        [[1, 0], [0, 0], [2, 3]], [[0, 0], [0, 0], [0, 0]],
    ]  # fmt: skip


def test_default_values_may_have_dimensions() -> None:
    values = np.float32([[1, 2], [3, 4], [5, 6]])
    assert dense(["ROW_SPLITS"], -1, values, [7, 8], [0, 1, 3]) == [[[1, 2], [7, 8]], [[3, 4], [5, 6]]]


def test_rows_without_values_have_a_column_as_in_litert() -> None:
    assert dense(["ROW_SPLITS"], -1, np.int32([]), 5, [0, 0, 0]) == [[5], [5]]
    assert dense(["ROW_SPLITS"], -1, np.int32([]), 5, [0]) == []


@pytest.mark.parametrize(
    ("kinds", "shape", "partitions", "message"),
    [
        (["ROW_SPLITS"], -1, [[0, 1, 2]], "parts 2 values, and there are 3"),
        (["ROW_SPLITS"], -1, [[0, 4, 3]], "that begin with 0 and never fall"),
        (["ROW_SPLITS"], -1, [[1, 3]], "that begin with 0 and never fall"),
        (["ROW_SPLITS"], -1, [[]], "must have row splits|gives -1 rows"),
        (["ROW_SPLITS"], [-1], [[0, 3]], "it must have 2 dimensions of -1 or more"),
        (["ROW_SPLITS"], [-1, -2], [[0, 3]], "it must have 2 dimensions of -1 or more"),
        (["ROW_SPLITS"], 7, [[0, 3]], "as a scalar it must be -1"),
        (["ROW_SPLITS", "ROW_SPLITS"], -1, [[0, 2**40], [0, 3]], "parts 1099511627776 values, and there are 1"),
        (["ROW_SPLITS", "VALUE_ROWIDS"], -1, [[0, 1], [0, 0, 1]], "parts 1 values, and there are 2"),
        (["FIRST_DIM_SIZE", "VALUE_ROWIDS"], -1, [1, [0, 0, 1]], "must have rows from 0 up to before 1"),
        (["FIRST_DIM_SIZE", "VALUE_ROWIDS"], -1, [-5, [0, 0, 1]], "gives -5 rows"),
        (["FIRST_DIM_SIZE", "VALUE_ROWIDS"], -1, [3, [1, 0, 1]], "must have rows"),
        (["VALUE_ROWIDS"], -1, [[0, 0, 1]], "the option 'row_partition_types'"),
        (["FIRST_DIM_SIZE", "ROW_SPLITS"], -1, [1, [0, 3]], "the option 'row_partition_types'"),
        (["ROW_LENGTHS"], -1, [[3]], "the option 'row_partition_types'"),
    ],
)
def test_partitions_that_do_not_fit_are_refused(kinds: list[str], shape: Any, partitions: Any, message: str) -> None:
    with pytest.raises(OpletError, match=message):
        dense(kinds, shape, np.int32([1, 2, 3]), 0, *partitions)


@pytest.mark.sweep
def test_random_ragged_tensors_are_tensorflow_s() -> None:
    tf = pytest.importorskip("tensorflow")
    random = np.random.default_rng(0)
    for _ in range(300):
        rows, middle = (int(each) for each in random.integers(1, 6, 2))
        count = int(random.integers(1, 30))
        outer = np.sort(np.concatenate(([0], random.integers(0, middle + 1, rows - 1), [middle])))
        inner = np.sort(np.concatenate(([0], random.integers(0, count + 1, middle - 1), [count])))
        values = random.integers(0, 99, count).astype(np.int32)
        ragged = tf.RaggedTensor.from_nested_row_splits(values, [outer, inner])
        picked = random.integers(0, rows, random.integers(0, 5))
        theirs = tf.gather(ragged, picked)
        ours = OneOp("RaggedGather", {}, ["int64", "int64", "int32"])(outer, inner, values, picked)
        for our, their in zip(ours, (*theirs.nested_row_splits, theirs.flat_values)):
            np.testing.assert_array_equal(our, their.numpy())
        shape = [int(each) for each in random.integers(-1, 5, 3)]
        wanted = ragged.to_tensor(-7, shape=[None if each < 0 else each for each in shape]).numpy()
        kinds = ["ROW_SPLITS", "ROW_SPLITS"]
        assert dense(kinds, shape, values, -7, outer, inner) == wanted.tolist()
        starts, limits = random.uniform(-9, 9, (2, 4)).astype(np.float32)
        deltas = (random.uniform(0.1, 2, 4) * random.choice([-1, 1], 4)).astype(np.float32)
        assert ranges(starts, limits, deltas, type="float32") == tf.ragged.range(starts, limits, deltas).to_list()
