from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import GatherOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

VALUES = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["int16", "int32", "int64"])
@pytest.mark.parametrize("positions", [2, [2, 0, 2], [[0], [1]], []])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_picks_slices(axis: int, positions: object, type: str, constant: bool) -> None:
    at = np.array(positions, type)
    model = one_op_model(
        "GATHER",
        [Spec("float32", VALUES.shape), at if constant else Spec(type, at.shape)],
        [Spec("float32", (1,))],
        GatherOptions(axis=axis),
    )
    (output,) = run_op(model, VALUES, *([] if constant else [at]))
    np.testing.assert_array_equal(output, np.take(VALUES, at.astype(int), axis))


@pytest.mark.parametrize("axis", [1, 2])
def test_batch_axes_go_in_step(axis: int) -> None:
    at = np.array([[3, 0], [1, 1], [2, 3]], np.int32)
    model = one_op_model(
        "GATHER", [Spec("float32", VALUES.shape), at], [Spec("float32", (1,))], GatherOptions(axis=axis, batch_dims=1)
    )
    (output,) = run_op(model, VALUES)
    np.testing.assert_array_equal(output, np.stack([np.take(v, p, axis - 1) for v, p in zip(VALUES, at)]))


def test_strings_can_be_gathered() -> None:
    words = np.array([b"a", b"bc", b""], object)
    model = one_op_model("GATHER", [Spec("object", (3,)), np.array([1, 1, 0], np.int32)], [Spec("object", (3,))], GatherOptions())
    assert run_op(model, words)[0].tolist() == [b"bc", b"bc", b"a"]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("position", [3, 10**8, -1, -(10**8)])
def test_positions_outside_are_refused(position: int, constant: bool) -> None:
    at = np.array([0, position], np.int32)
    model = one_op_model(
        "GATHER", [Spec("float32", (3,)), at if constant else Spec("int32", (2,))], [Spec("float32", (2,))], GatherOptions()
    )
    with pytest.raises(OpletError, match=f"position {position} is outside .* length 3"):
        run_op(model, np.zeros(3, np.float32), *([] if constant else [at]))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (GatherOptions(axis=9), "axis is 9"),
        (GatherOptions(axis=0, batch_dims=1), "batch_dims is 1"),
        (GatherOptions(axis=1, batch_dims=1), "differ in their first 1 dimensions"),
    ],
)
def test_axes_that_do_not_fit_are_refused(options: GatherOptions, reason: str) -> None:
    model = one_op_model("GATHER", [Spec("float32", VALUES.shape), np.array([0, 1], np.int32)], [Spec("float32", (2,))], options)
    with pytest.raises(OpletError, match=reason):
        run_op(model, VALUES)


def test_the_output_takes_the_type_of_the_input() -> None:
    model = one_op_model("GATHER", [Spec("int8", (3,)), np.array([2, 0], np.int32)], [Spec("float32", (2,))], GatherOptions())
    (output,) = run_op(model, np.array([1, 2, 3], np.int8))
    assert output.dtype == np.int8
    assert output.tolist() == [3, 1]
