"""CUMSUM and BUCKETIZE."""

from __future__ import annotations

import bisect

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import BucketizeOptions, CumsumOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["float32", "int32", "int64"])
@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running_sums(axis: int, exclusive: bool, reverse: bool, type: str, constant: bool) -> None:
    values = np.random.default_rng(0).integers(-9, 9, (2, 3, 4)).astype(type)
    at = np.array(axis, np.int32)
    model = one_op_model(
        "CUMSUM",
        [Spec(type, values.shape), at if constant else Spec("int32", ())],
        [Spec(type, values.shape)],
        CumsumOptions(exclusive=exclusive, reverse=reverse),
    )
    ordered = np.flip(values, axis) if reverse else values
    wanted = np.cumsum(ordered, axis) - (ordered if exclusive else 0)
    (output,) = run_op(model, values, *([] if constant else [at]))
    np.testing.assert_array_equal(output, np.flip(wanted, axis) if reverse else wanted)


def test_running_sums_of_nothing_and_along_no_axis() -> None:
    def model(shape: tuple[int, ...], axis: int) -> bytes:
        inputs = [Spec("int32", shape), np.array(axis, np.int32)]
        return one_op_model("CUMSUM", inputs, [Spec("int32", shape)], CumsumOptions(exclusive=True))

    assert run_op(model((2, 0), 1), np.zeros((2, 0), np.int32))[0].shape == (2, 0)
    with pytest.raises(OpletError, match="axis is 2"):
        run_op(model((2, 2), 2), np.zeros((2, 2), np.int32))


def bucketize(values: np.ndarray[int, np.dtype[np.generic]], boundaries: list[float]) -> list[int]:
    options = BucketizeOptions(boundaries=np.array(boundaries, np.float32))
    model = one_op_model("BUCKETIZE", [Spec(values.dtype, values.shape)], [Spec("int32", (1,))], options)
    result: list[int] = run_op(model, values)[0].tolist()
    return result


@pytest.mark.parametrize("type", ["float32", "float64", "int32", "int64"])
def test_buckets_begin_at_their_boundaries(type: str) -> None:
    values = np.array([-7, -2, -1, 0, 3, 4, 100], type)
    assert bucketize(values, [-2, 0, 3]) == [bisect.bisect_right([-2, 0, 3], value) for value in values]


def test_boundaries_must_be_sorted() -> None:
    with pytest.raises(OpletError, match="must be sorted"):
        bucketize(np.zeros(1, np.float32), [0, 2, 1])
