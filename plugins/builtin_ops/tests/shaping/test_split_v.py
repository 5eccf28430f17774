from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import SplitVOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

VALUES = np.arange(24, dtype=np.int16).reshape(2, 6, 2)


def split_v(sizes: object, axis: object, count: int) -> bytes:
    return one_op_model(
        "SPLIT_V", [Spec("int16", VALUES.shape), sizes, axis], [Spec("int16", (1,))] * count, SplitVOptions(num_splits=count)
    )


@pytest.mark.parametrize("type", ["int32", "int64"])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("sizes", "wanted"), [([1, 2, 3], [1, 2, 3]), ([4, -1, 0], [4, 2, 0]), ([-1], [6])])
def test_pieces_have_the_given_sizes(sizes: list[int], wanted: list[int], constant: bool, type: str) -> None:
    given, axis = np.array(sizes, type), np.array(-2, np.int32)
    operands = (given, axis) if constant else (Spec(type, given.shape), Spec("int32", ()))
    pieces = run_op(split_v(*operands, len(sizes)), VALUES, *(() if constant else (given, axis)))
    for piece, want in zip(pieces, np.split(VALUES, np.cumsum(wanted)[:-1], 1), strict=True):
        np.testing.assert_array_equal(piece, want)


@pytest.mark.parametrize(
    ("sizes", "axis", "reason"),
    [
        ([3, 2], 1, r"\[3, 2\] .* add up to 6"),
        ([-1, -1], 1, "more than one -1"),
        ([7, -1], 1, "must not be negative"),
        ([-2, 8], 1, "must not be negative"),
        ([3, 3], 3, "axis is 3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: list[int], axis: int, reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        run_op(split_v(np.array(sizes, np.int32), np.array(axis, np.int32), 2), VALUES)


def test_there_must_be_as_many_sizes_as_outputs() -> None:
    with pytest.raises(OpletError, match="vector of 2 sizes"):
        run_op(split_v(np.array([6], np.int32), np.array(1, np.int32), 2), VALUES)
