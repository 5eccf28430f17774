from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import OneHotOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

INDICES = [[0, 2, -1], [1, 3, 0]]


def one_hot(
    type: str, axis: int, depth: int, indices: object = INDICES, constant: bool = True
) -> np.ndarray[int, np.dtype[np.int8]]:
    at, many = np.array(indices, np.int64), np.array(depth, np.int32)
    model = one_op_model(
        "ONE_HOT",
        [Spec("int64", at.shape), many if constant else Spec("int32", ()), np.array(1, type), np.array(0, type)],
        [Spec(type, (1,))],
        OneHotOptions(axis=axis),
    )
    return run_op(model, at, *([] if constant else [many]))[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["float32", "int8", "uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
def test_on_is_where_the_index_points(axis: int, type: str, constant: bool) -> None:
    wanted = np.zeros((2, 3, 3), type)
    for place, index in np.ndenumerate(INDICES):
        if 0 <= index < 3:
            wanted[(*place, index)] = 1
    np.testing.assert_array_equal(one_hot(type, axis, 3, constant=constant), np.moveaxis(wanted, -1, axis))


@pytest.mark.parametrize(("axis", "depth", "reason"), [(3, 3, "axis is 3"), (-2, 3, "axis is -2"), (0, -5, "depth is -5")])
def test_wrong_axes_and_depths_are_refused(axis: int, depth: int, reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        one_hot("float32", axis, depth)


def test_types_that_litert_does_not_fill_are_refused() -> None:
    with pytest.raises(OpletError, match="INT16"):
        one_hot("int16", 0, 3)


def test_no_indices_take_no_memory_however_deep() -> None:
    model = one_op_model(
        "ONE_HOT",
        [Spec("int32", [0, 4]), np.array(2**30, np.int32), *np.eye(2, 1, dtype=np.float32)],
        [Spec("float32", [1])],
        OneHotOptions(axis=-1),
    )
    assert run_op(model, np.zeros((0, 4), np.int32))[0].shape == (0, 4, 2**30)
