"""SLICE and STRIDED_SLICE against Python's own slicing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import StridedSliceOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

VALUES = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


def slice_model(begin: Any, size: Any, output: Spec) -> bytes:
    return one_op_model("SLICE", [Spec("float32", VALUES.shape), begin, size], [output])


@pytest.mark.parametrize("type", ["int32", "int64"])
@pytest.mark.parametrize(
    ("begin", "size"), [([0, 1, 2], [3, 2, 1]), ([1, 0, 0], [-1, -1, -1]), ([3, 4, 0], [0, -1, 5]), ([2, 3, 4], [1, 1, 1])]
)
@pytest.mark.parametrize("given", ["both", "size", "neither"])
def test_slice_is_a_box(begin: list[int], size: list[int], type: str, given: str) -> None:
    arrays = {"begin": np.array(begin, type), "size": np.array(size, type)}
    operands: list[Any] = [
        Spec(type, (3,)) if given == "neither" or (given == "size" and k == "begin") else v for k, v in arrays.items()
    ]
    feeds = [v for v, operand in zip(arrays.values(), operands) if isinstance(operand, Spec)]
    model = slice_model(*operands, Spec("float32", (1, 1, 1), signature=(-1, -1, -1)))
    box = tuple(slice(b, None if s == -1 else b + s) for b, s in zip(begin, size))
    np.testing.assert_array_equal(run_op(model, VALUES, *feeds)[0], VALUES[box])


@pytest.mark.parametrize(
    ("begin", "size"), [([2, 0, 0], [1_000_000, 1, 1]), ([-1, 0, 0], [1, 1, 1]), ([0, 0, 0], [1, -2, 1]), ([0, 5, 0], [1, -1, 1])]
)
@pytest.mark.parametrize("constant", [True, False])
def test_slice_refuses_to_leave_the_tensor(begin: list[int], size: list[int], constant: bool) -> None:
    arrays = [np.array(v, np.int32) for v in (begin, size)]
    operands = arrays if constant else [Spec("int32", (3,))] * 2
    model = slice_model(*operands, Spec("float32", (1, 1, 1), signature=(-1, -1, -1)))
    with pytest.raises(OpletError, match=r"begin \[.*\] and size \[.*\] leave"):
        run_op(model, VALUES, *([] if constant else arrays))


def test_a_slice_other_than_declared_is_refused() -> None:
    model = slice_model(np.zeros(3, np.int32), Spec("int32", (3,)), Spec("float32", (1, 4, 5)))
    np.testing.assert_array_equal(run_op(model, VALUES, np.array([1, 4, 5], np.int32))[0], VALUES[:1])
    with pytest.raises(OpletError, match=r"the slice has the shape \[2, 4, 5\]"):
        run_op(model, VALUES, np.array([2, 4, 5], np.int32))


def strided(begin: list[int], end: list[int], strides: list[int], *, constant: bool = True, **options: Any) -> np.ndarray:
    arrays = [np.array(v, np.int32) for v in (begin, end, strides)]
    operands = arrays if constant else [Spec("int32", array.shape) for array in arrays]
    model = one_op_model(
        "STRIDED_SLICE", [Spec("float32", VALUES.shape), *operands], [Spec("float32", (1,))], StridedSliceOptions(**options)
    )
    return run_op(model, VALUES, *([] if constant else arrays))[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("begin", "end", "strides", "options", "index"),
    [
        ([0, 1, 2], [3, 3, 5], [1, 1, 2], {}, np.s_[:, 1:3, 2:5:2]),
        ([-1, -9], [-9, 99], [-1, 3], {}, np.s_[::-1, ::3]),
        ([1, 2], [0, 0], [1, 1], {"begin_mask": 2, "end_mask": 1}, np.s_[1:, :0]),
        ([2, 0], [0, 0], [-1, 1], {"begin_mask": 1, "end_mask": 3}, np.s_[::-1]),
        ([1], [2], [1], {"shrink_axis_mask": 1}, np.s_[1]),
        ([0, -1], [0, 0], [1, 1], {"ellipsis_mask": 1, "shrink_axis_mask": 2}, np.s_[..., -1]),
        ([0, 0, 1], [0, 0, 2], [1, 1, 1], {"new_axis_mask": 1, "ellipsis_mask": 2}, np.s_[None, ..., 1:2]),
        ([1, 2, 3], [2, 3, 4], [1, 1, 1], {"shrink_axis_mask": 7}, np.s_[1, 2, 3]),
        ([1, 0], [2, 2], [1, 2], {"offset": True}, np.s_[1:3, 0:2:2]),
        ([2], [1], [1], {}, np.s_[2:1]),
        ([], [], [], {}, np.s_[:]),
    ],
)
def test_strided_slice_slices_as_python_does(
    begin: list[int], end: list[int], strides: list[int], options: dict[str, Any], index: Any, constant: bool
) -> None:
    np.testing.assert_array_equal(strided(begin, end, strides, constant=constant, **options), VALUES[index])


def test_with_offsets_the_shape_does_not_wait_for_begin() -> None:
    model = one_op_model(
        "STRIDED_SLICE",
        [Spec("float32", (5,)), Spec("int32", (1,)), np.array([2], np.int32), np.array([1], np.int32)],
        [Spec("float32", (1,))],
        StridedSliceOptions(offset=True),
    )
    values = np.arange(5, dtype=np.float32)
    assert run_op(model, values, np.array([3], np.int32))[0].tolist() == [3, 4]
    with pytest.raises(OpletError, match=r"begin \[4\] lets the slice of \[2\] leave"):
        run_op(model, values, np.array([4], np.int32))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("begin", "strides", "options", "reason"),
    [
        ([0], [0], {}, r"strides \[0\] must not be zero"),
        ([3], [1], {"shrink_axis_mask": 1}, "position 3 of an axis of length 3"),
        ([1], [-1], {"shrink_axis_mask": 1}, "must be above zero, not -1"),
        ([0, 0, 0, 0], [1, 1, 1, 1], {}, "4 entries"),
        ([0, 0], [1, 1], {"ellipsis_mask": 3}, "more than one ellipsis"),
    ],
)
def test_strided_slice_refuses_what_makes_no_slice(
    begin: list[int], strides: list[int], options: dict[str, Any], reason: str, constant: bool
) -> None:
    with pytest.raises(OpletError, match=reason):
        strided(begin, [9] * len(begin), strides, constant=constant, **options)
