from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import ConcatenationOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


@pytest.mark.parametrize("type", ["float32", "int8", "int16", "int64", "bool"])
@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_inputs_follow_one_another_along_the_axis(axis: int, type: str) -> None:
    shapes = [[2, 3, 4] for _ in range(3)]
    for length, shape in zip((1, 0, 2), shapes):
        shape[axis] = length
    values = [np.arange(np.prod(shape)).reshape(shape).astype(type) for shape in shapes]
    model = one_op_model(
        "CONCATENATION", [Spec(type, s) for s in shapes], [Spec(type, shapes[0])], ConcatenationOptions(axis=axis)
    )
    np.testing.assert_array_equal(run_op(model, *values)[0], np.concatenate(values, axis))


def test_scalars_become_a_vector() -> None:
    scalars = [np.array(v, np.int32) for v in (3, 1, 2)]
    model = one_op_model("CONCATENATION", scalars, [Spec("int32", (3,))], ConcatenationOptions(axis=0))
    assert run_op(model)[0].tolist() == [3, 1, 2]


def test_uint8_inputs_are_rescaled(litert: Callable[..., list[Any]]) -> None:
    specs = [Spec("uint8", (256,), scale, zero) for scale, zero in ((0.1, 3), (0.033, 200), (0.05, 90))]
    output = Spec("uint8", (768,), 0.05, 90)
    model = one_op_model("CONCATENATION", specs, [output], ConcatenationOptions(axis=0))
    everything = np.arange(256, dtype=np.uint8)
    (got,) = run_op(model, everything, everything, everything)
    np.testing.assert_array_equal(got[512:], everything)
    np.testing.assert_array_equal(got, litert(model, everything, everything, everything)[0])


@pytest.mark.parametrize(
    ("shapes", "options", "reason"),
    [
        ([(2, 3), (2, 3)], ConcatenationOptions(axis=4), "axis is 4"),
        ([(2, 3), (2, 4)], ConcatenationOptions(axis=0), "differ elsewhere than on axis 0"),
        ([(2, 3), (2,)], ConcatenationOptions(axis=0), "differ elsewhere than on axis 0"),
        ([(2, 3)], ConcatenationOptions(fused_activation_function=ActivationFunctionType.RELU), "fused activation RELU"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(shapes: list[tuple[int, ...]], options: ConcatenationOptions, reason: str) -> None:
    model = one_op_model("CONCATENATION", [Spec("float32", s) for s in shapes], [Spec("float32", (4, 3))], options)
    with pytest.raises(OpletError, match=reason):
        run_op(model, *(np.zeros(s, np.float32) for s in shapes))


def test_int8_inputs_of_another_scale_are_refused() -> None:
    model = one_op_model(
        "CONCATENATION",
        [Spec("int8", (2,), 0.1, 0), Spec("int8", (2,), 0.2, 0)],
        [Spec("int8", (4,), 0.1, 0)],
        ConcatenationOptions(),
    )
    with pytest.raises(OpletError, match=r"scale 0\.2 and zero point 0"):
        run_op(model, np.zeros(2, np.int8), np.zeros(2, np.int8))
