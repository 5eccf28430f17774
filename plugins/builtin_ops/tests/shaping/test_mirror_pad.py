from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import MirrorPadMode
from oplet.schema.options import MirrorPadOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def mirror_pad(values: Any, paddings: Any, mode: MirrorPadMode, constant: bool = True, type: str = "int32") -> Any:
    given = np.array(paddings, type)
    model = one_op_model(
        "MIRROR_PAD",
        [Spec(values.dtype, values.shape), given if constant else Spec(type, given.shape)],
        [Spec(values.dtype, (1,) * values.ndim)],
        MirrorPadOptions(mode=mode),
        version=2,
    )
    return run_op(model, values, *([] if constant else [given]))[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["int32", "int64"])
@pytest.mark.parametrize("mode", MirrorPadMode)
@pytest.mark.parametrize("paddings", [[[0, 0], [0, 0], [0, 0]], [[1, 0], [2, 1], [0, 3]], [[1, 1], [0, 2], [3, 3]]])
def test_borders_repeat_what_is_inside(paddings: Any, mode: MirrorPadMode, type: str, constant: bool) -> None:
    values = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    wanted = np.pad(values, paddings, "reflect" if mode == MirrorPadMode.REFLECT else "symmetric")
    np.testing.assert_array_equal(mirror_pad(values, paddings, mode, constant, type), wanted)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("mode", "padding"), [(MirrorPadMode.REFLECT, 3), (MirrorPadMode.SYMMETRIC, 4), (MirrorPadMode.SYMMETRIC, -1)]
)
def test_there_must_be_enough_inside(mode: MirrorPadMode, padding: int, constant: bool) -> None:
    with pytest.raises(OpletError, match=rf"\[0, {padding}\] of axis 0 must be 0 to {3 - (mode == MirrorPadMode.REFLECT)}"):
        mirror_pad(np.zeros(3, np.float32), [[0, padding]], mode, constant)


def test_there_must_be_a_pair_for_each_axis() -> None:
    with pytest.raises(OpletError, match=r"must have shape \[2, 2\]"):
        mirror_pad(np.zeros((3, 3), np.float32), [[0, 0]], MirrorPadMode.REFLECT)
