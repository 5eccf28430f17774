"""DILATE and STABLEHLO_PAD against LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.stablehlo_options import StablehloPadOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def pad_model(type: str, shape: Any, low: Any, high: Any, interior: Any) -> bytes:
    numbers = [np.array(v, np.int64) for v in (low, high, interior)]
    options = StablehloPadOptions(edge_padding_low=numbers[0], edge_padding_high=numbers[1], interior_padding=numbers[2])
    return one_op_model("STABLEHLO_PAD", [Spec(type, shape), Spec(type, ())], [Spec(type, (1,) * len(shape))], options)


@pytest.mark.parametrize("type", ["float32", "int8", "int64", "bool", "float16", "uint16"])
@pytest.mark.parametrize(
    ("low", "high", "interior"),
    [
        ([1, 2], [3, 0], [0, 0]),
        ([0, 0], [0, 0], [2, 1]),
        ([-1, 2], [1, -2], [1, 3]),
        ([-2, -3], [-1, 4], [2, 2]),
        ([-5, 0], [-4, 0], [1, 0]),
        ([0, -9], [0, -9], [0, 0]),
        ([-9, 9], [9, -9], [1, 1]),
        ([0, 0], [0, 0], [0, 0]),
    ],
)
def test_pad_equals_litert(litert: Callable[..., Any], low: Any, high: Any, interior: Any, type: str) -> None:
    model = pad_model(type, (3, 4), low, high, interior)
    feeds = np.arange(1, 13).reshape(3, 4).astype(type), np.array(77).astype(type)
    mine, theirs = run_op(model, *feeds)[0], litert(model, *feeds)[0]
    assert mine.shape == theirs.shape
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("low", "interior"), [([2], [1]), ([0, 1], [1, 0]), ([1, -1, 2], [0, 1, 1])])
@pytest.mark.parametrize("shape", [(12,), (3, 4), (1, 3, 4), (3, 2, 2)])
def test_axes_without_numbers_are_not_padded_as_in_litert(
    shape: tuple[int, ...], low: list[int], interior: list[int], litert: Callable[..., Any]
) -> None:
    model = pad_model("int32", shape, low, low[::-1], interior)
    feeds = np.arange(12, dtype=np.int32).reshape(shape), np.int32(77)
    mine, theirs = run_op(model, *feeds)[0], litert(model, *feeds)[0]
    assert mine.shape == theirs.shape
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("interior", "message"), [([0, -1], "must not be negative"), ([1], "as many"), ([0, 0, 0], "as many")])
def test_pad_refuses(interior: list[int], message: str) -> None:
    model = pad_model("float32", (3, 4), [0, 0], [0, 0], interior)
    with pytest.raises(OpletError, match=message):
        run_op(model, np.zeros((3, 4), np.float32), np.float32(0))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("type", ["float32", "int8", "int64", "uint8"])
@pytest.mark.parametrize("factors", [(1, 1, 1), (2, 1, 1), (1, 3, 2), (2, 2, 3)])
def test_dilate_equals_litert(litert: Callable[..., Any], factors: Any, type: str, constant: bool) -> None:
    given = np.array(factors, np.int32)
    source, value = np.arange(24).reshape(2, 3, 4).astype(type), np.array(9).astype(type)
    operands = [Spec(type, source.shape), given if constant else Spec("int32", (3,)), Spec(type, ())]
    model = one_op_model("DILATE", operands, [Spec(type, (1, 1, 1))])
    feeds = [source, value] if constant else [source, given, value]
    np.testing.assert_array_equal(run_op(model, *feeds)[0], litert(model, *feeds)[0])


@pytest.mark.parametrize("constant", [True, False])
def test_dilate_refuses_factors_below_one(constant: bool) -> None:
    given = np.array([1, 0], np.int32)
    operands = [Spec("int8", (2, 2)), given if constant else Spec("int32", (2,)), np.int8(0)]
    model = one_op_model("DILATE", operands, [Spec("int8", (1, 1))])
    with pytest.raises(OpletError, match=r"dilations \[1, 0\] must not be below 1"):
        run_op(model, np.zeros((2, 2), np.int8), *([] if constant else [given]))
