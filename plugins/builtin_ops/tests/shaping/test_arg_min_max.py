from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import TensorType
from oplet.schema.options import ArgMaxOptions, ArgMinOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

OPTIONS = {"ARG_MAX": ArgMaxOptions, "ARG_MIN": ArgMinOptions}


def arg(
    op: str, values: np.ndarray[int, np.dtype[np.generic]], axis: object, type: str = "int32"
) -> np.ndarray[int, np.dtype[np.int32]]:
    constant = not isinstance(axis, Spec)
    model = one_op_model(
        op,
        [Spec(values.dtype, values.shape), np.array(axis, np.int64) if constant else Spec("int64", ())],
        [Spec("int32", (1,))],
        OPTIONS[op](output_type=TensorType[type.upper()]),
    )
    return run_op(model, values, *([] if constant else [axis.data]))[0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("result", ["int32", "int64"])
@pytest.mark.parametrize("type", ["float32", "int8", "uint8", "int32", "bool"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("op", OPTIONS)
def test_the_first_of_equals_is_found(op: str, axis: int, type: str, result: str, constant: bool) -> None:
    values = np.random.default_rng(0).integers(0, 4, (3, 4, 5)).astype(type)
    search = np.argmax if op == "ARG_MAX" else np.argmin
    got = arg(op, values, axis if constant else Spec("int64", (), data=np.int64(axis)), result)
    assert got.dtype == result
    np.testing.assert_array_equal(got, search(values, axis))


@pytest.mark.parametrize("type", ["float32", "int8", "uint8", "int32", "bool"])
@pytest.mark.parametrize("shape", [(50, 60, 2), (4000, 24), (130, 3), (127, 3), (1, 200, 1)])
def test_many_short_lines_are_searched_alike(shape: tuple[int, ...], type: str) -> None:
    values = np.random.default_rng(1).integers(-3 if type in ("float32", "int8", "int32") else 0, 4, shape).astype(type)
    np.testing.assert_array_equal(arg("ARG_MAX", values, -1), np.argmax(values, -1))
    np.testing.assert_array_equal(arg("ARG_MIN", values, -1), np.argmin(values, -1))


@pytest.mark.parametrize("type", ["int8", "uint8"])
@pytest.mark.parametrize("shape", [(128, 25), (13, 10, 151), (700, 256), (300, 257)])
def test_many_lines_of_octets_are_searched_alike(shape: tuple[int, ...], type: str) -> None:
    random, limits = np.random.default_rng(2), np.iinfo(type)
    values = random.integers(limits.min, limits.max + 1, shape).astype(type)
    values[random.random(shape[:-1]) < 0.3] //= 64  # many equals
    for op, search in (("ARG_MAX", np.argmax), ("ARG_MIN", np.argmin)):
        np.testing.assert_array_equal(arg(op, values, -1), search(values, -1))


@pytest.mark.parametrize(
    ("row", "largest", "smallest"),
    [
        ([np.nan, 1, 2], 2, 1),
        ([1, np.nan, 2], 2, 0),
        ([np.nan, -np.inf, np.nan], 1, 1),
        ([np.nan, np.inf, np.nan], 1, 1),
        ([np.nan] * 3, 0, 0),
    ],
)
def test_nan_is_passed_over(row: list[float], largest: int, smallest: int) -> None:
    values = np.array([row], np.float32)
    assert arg("ARG_MAX", values, 1).tolist() == [largest]
    assert arg("ARG_MIN", values, 1).tolist() == [smallest]


@pytest.mark.parametrize(
    ("shape", "axis", "reason"),
    [((2, 3), 17, "axis is 17"), ((2, 0), 1, "axis 1 .* is empty"), ((), 0, "at least one dimension")],
)
def test_axes_without_values_are_refused(shape: tuple[int, ...], axis: int, reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        arg("ARG_MAX", np.zeros(shape, np.float32), axis)
