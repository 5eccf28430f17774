"""SPLIT, PACK and UNPACK: one tensor from several, several from one."""

from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import PackOptions, SplitOptions, UnpackOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("axis", "pieces"), [(0, 2), (1, 3), (-1, 4), (-2, 1)])
def test_split_gives_equal_pieces(axis: int, pieces: int, constant: bool) -> None:
    values = np.arange(48, dtype=np.float32).reshape(4, 3, 4)
    at = np.array(axis, np.int32)
    model = one_op_model(
        "SPLIT",
        [at if constant else Spec("int32", ()), Spec("float32", values.shape)],
        [Spec("float32", (1,))] * pieces,
        SplitOptions(num_splits=pieces),
    )
    got = run_op(model, *([] if constant else [at]), values)
    for piece, wanted in zip(got, np.split(values, pieces, axis), strict=True):
        np.testing.assert_array_equal(piece, wanted)


@pytest.mark.parametrize(
    ("axis", "num_splits", "outputs", "reason"),
    [
        (9, 2, 2, "axis is 9"),
        (0, 0, 2, "num_splits is 0"),
        (0, 3, 3, "length 4, which 3 pieces do not divide"),
        (0, 2, 1, "1 outputs and gives 2"),
    ],
)
def test_split_refuses_what_cannot_be_split(axis: int, num_splits: int, outputs: int, reason: str) -> None:
    model = one_op_model(
        "SPLIT",
        [np.array(axis, np.int32), Spec("float32", (4,))],
        [Spec("float32", (2,))] * outputs,
        SplitOptions(num_splits=num_splits),
    )
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros(4, np.float32))


@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("axis", [0, -1])
def test_unpack_undoes_pack(shape: tuple[int, ...], axis: int) -> None:
    values = [np.full(shape, v, np.int32) for v in (5, 6, 7)]
    pack = one_op_model("PACK", [Spec("int32", shape)] * 3, [Spec("int32", (3,))], PackOptions(values_count=3, axis=axis))
    (packed,) = run_op(pack, *values)
    np.testing.assert_array_equal(packed, np.stack(values, axis))
    unpack = one_op_model("UNPACK", [Spec("int32", packed.shape)], [Spec("int32", shape)] * 3, UnpackOptions(num=3, axis=axis))
    for piece, value in zip(run_op(unpack, packed), values, strict=True):
        np.testing.assert_array_equal(piece, value)


@pytest.mark.parametrize(
    ("shapes", "options", "reason"),
    [
        ([(2,), (3,)], PackOptions(values_count=2), "must have the same shape"),
        ([(2,), (2,)], PackOptions(values_count=2, axis=2), "axis is 2"),
        ([(2,), (2,)], PackOptions(values_count=3), "2 inputs and takes 3"),
    ],
)
def test_pack_refuses_what_does_not_stack(shapes: list[tuple[int, ...]], options: PackOptions, reason: str) -> None:
    model = one_op_model("PACK", [Spec("float32", s) for s in shapes], [Spec("float32", (2, 2))], options)
    with pytest.raises(OpletError, match=reason):
        run_op(model, *(np.zeros(s, np.float32) for s in shapes))


@pytest.mark.parametrize(
    ("options", "reason"), [(UnpackOptions(num=2, axis=1), "axis 1 .* is 3"), (UnpackOptions(num=2, axis=-3), "axis is -3")]
)
def test_unpack_refuses_another_length(options: UnpackOptions, reason: str) -> None:
    model = one_op_model("UNPACK", [Spec("float32", (2, 3))], [Spec("float32", (2,))] * 2, options)
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros((2, 3), np.float32))
