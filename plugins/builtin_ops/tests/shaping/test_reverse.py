"""REVERSE_V2 and REVERSE_SEQUENCE."""

from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import ReverseSequenceOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

VALUES = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("axes", [[0], [2], [-2], [1, 2], [1, 0], [0, 1, 2], [0, 2], [2, 0], [-1, 0], []])
def test_any_axes_are_reversed(axes: list[int], constant: bool) -> None:
    at = np.array(axes, np.int32)
    model = one_op_model(
        "REVERSE_V2", [Spec("int32", VALUES.shape), at if constant else Spec("int32", at.shape)], [Spec("int32", (1,))]
    )
    np.testing.assert_array_equal(run_op(model, VALUES, *([] if constant else [at]))[0], np.flip(VALUES, axes))


@pytest.mark.parametrize(("axes", "reason"), [([1, 1], r"\[1, 1\] must be different"), ([3], "axis is 3")])
def test_other_axes_are_refused(axes: list[int], reason: str) -> None:
    model = one_op_model("REVERSE_V2", [Spec("int32", VALUES.shape), np.array(axes, np.int32)], [Spec("int32", VALUES.shape)])
    with pytest.raises(OpletError, match=reason):
        run_op(model, VALUES)


def reverse_sequence(
    lengths: list[int], steps: int, batches: int, constant: bool, type: str = "int32"
) -> np.ndarray[int, np.dtype[np.int32]]:
    given = np.array(lengths, type)
    model = one_op_model(
        "REVERSE_SEQUENCE",
        [Spec("int32", VALUES.shape), given if constant else Spec(type, given.shape)],
        [Spec("int32", VALUES.shape)],
        ReverseSequenceOptions(seq_dim=steps, batch_dim=batches),
    )
    return run_op(model, VALUES, *([] if constant else [given]))[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["int32", "int64"])
@pytest.mark.parametrize(("steps", "batches"), [(1, 0), (0, 1), (2, 0), (2, 1), (1, 2)])
def test_each_batch_is_reversed_up_to_its_length(steps: int, batches: int, type: str, constant: bool) -> None:
    lengths = np.random.default_rng(0).integers(0, VALUES.shape[steps] + 1, VALUES.shape[batches]).tolist()
    wanted = np.moveaxis(VALUES.copy(), (batches, steps), (0, 1))
    for batch, length in zip(wanted, lengths):
        batch[:length] = batch[:length][::-1].copy()
    got = reverse_sequence(lengths, steps, batches, constant, type)
    np.testing.assert_array_equal(got, np.moveaxis(wanted, (0, 1), (batches, steps)))


@pytest.mark.parametrize("constant", [True, False])
def test_lengths_beyond_the_sequence_are_refused(constant: bool) -> None:
    with pytest.raises(OpletError, match=r"length 999999 \(number 1\) is beyond the 3 steps of axis 1"):
        reverse_sequence([1, 999999], 1, 0, constant)


@pytest.mark.parametrize(
    ("lengths", "steps", "batches", "reason"),
    [([1, 1], 0, 0, "both 0"), ([1, 1], 3, 0, "seq_dim is 3"), ([1, 1], 1, -1, "batch_dim is -1"), ([1], 1, 0, "vector of 2")],
)
def test_axes_that_do_not_fit_are_refused(lengths: list[int], steps: int, batches: int, reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        reverse_sequence(lengths, steps, batches, True)
