from __future__ import annotations

import itertools

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import DepthToSpaceOptions, SpaceToDepthOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("perm", [*itertools.permutations(range(3)), (-1, 0, -2)])
def test_output_axis_i_is_input_axis_perm_i(perm: tuple[int, ...], constant: bool) -> None:
    values = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    given = np.array(perm, np.int32)
    model = one_op_model(
        "TRANSPOSE", [Spec("int16", (2, 3, 4)), given if constant else Spec("int32", (3,))], [Spec("int16", (2, 3, 4))]
    )
    (output,) = run_op(model, values, *([] if constant else [given]))
    np.testing.assert_array_equal(output, values.transpose(perm))


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_a_large_map_gets_its_few_channels_last(dtype: str) -> None:
    values = np.random.default_rng(0).integers(-128, 128, (1, 3, 40, 80)).astype(dtype)
    model = one_op_model(
        "TRANSPOSE", [Spec(dtype, values.shape), np.array([0, 2, 3, 1], np.int32)], [Spec(dtype, (1, 40, 80, 3))]
    )
    np.testing.assert_array_equal(run_op(model, values)[0], values.transpose(0, 2, 3, 1))


@pytest.mark.parametrize(
    ("perm", "reason"),
    [([7, 0], r"\[7, 0\] is 7"), ([0, 0], r"\[0, 0\] names an axis twice"), ([0], "must name each of the 2 axes")],
)
def test_what_is_no_permutation_is_refused(perm: list[int], reason: str) -> None:
    model = one_op_model("TRANSPOSE", [Spec("float32", (2, 3)), np.array(perm, np.int32)], [Spec("float32", (3, 2))])
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros((2, 3), np.float32))


def test_depth_to_space_lays_channels_out_as_blocks() -> None:
    values = np.array([[[[1, 2, 3, 4]]]], np.float32)
    model = one_op_model(
        "DEPTH_TO_SPACE", [Spec("float32", (1, 1, 1, 4))], [Spec("float32", (1, 2, 2, 1))], DepthToSpaceOptions(block_size=2)
    )
    assert run_op(model, values)[0].tolist() == [[[[1], [2]], [[3], [4]]]]


def test_space_to_depth_undoes_depth_to_space() -> None:
    values = np.arange(2 * 3 * 5 * 18).reshape(2, 3, 5, 18)
    spread = one_op_model(
        "DEPTH_TO_SPACE", [Spec("int64", values.shape)], [Spec("int64", (2, 9, 15, 2))], DepthToSpaceOptions(block_size=3)
    )
    gather = one_op_model(
        "SPACE_TO_DEPTH", [Spec("int64", (2, 9, 15, 2))], [Spec("int64", values.shape)], SpaceToDepthOptions(block_size=3)
    )
    np.testing.assert_array_equal(run_op(gather, *run_op(spread, values))[0], values)


@pytest.mark.parametrize(
    ("op", "options", "shape", "reason"),
    [
        ("DEPTH_TO_SPACE", DepthToSpaceOptions(block_size=0), (1, 1, 1, 4), "block_size is 0"),
        ("DEPTH_TO_SPACE", DepthToSpaceOptions(block_size=3), (1, 1, 1, 4), "4 channels, which blocks of 3 x 3"),
        ("SPACE_TO_DEPTH", SpaceToDepthOptions(block_size=-1), (1, 4, 4, 1), "block_size is -1"),
        ("SPACE_TO_DEPTH", SpaceToDepthOptions(block_size=3), (1, 3, 4, 1), "3 x 4, which blocks of 3 x 3"),
        ("SPACE_TO_DEPTH", SpaceToDepthOptions(block_size=1), (4, 4), "must have 4 dimensions"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(op: str, options: object, shape: tuple[int, ...], reason: str) -> None:
    model = one_op_model(op, [Spec("float32", shape)], [Spec("float32", shape)], options)
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros(shape, np.float32))
