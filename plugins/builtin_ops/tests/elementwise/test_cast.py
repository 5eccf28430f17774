"""CAST and BITCAST: every pair of types against LiteRT, bounds, packed types, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import TensorType
from oplet.errors import PrepareError
from oplet_testing.one_op import Spec, one_op_model, run_op

TYPES = ["float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool", "complex64"]


def values(dtype: str) -> Any:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([True, False])
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, info.max - 1, 0, 1, 100, info.max // 3, info.max // 65537], dtype)
    powers = [sign * 2.0**p + d for p in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1) for d in (-1, 0, 1)]
    with np.errstate(all="ignore"):
        reals = np.array([0, 0.5, -0.5, 2.7, -2.7, np.inf, -np.inf, np.nan, 2.0**63 - 1024, *powers])
        return (reals + 1j if kind == "c" else reals).astype(dtype)


@pytest.mark.parametrize("given", TYPES)
@pytest.mark.parametrize("wanted", TYPES)
def test_every_pair_of_types_equals_litert(litert: Any, given: str, wanted: str) -> None:
    x = values(given)
    model = one_op_model("CAST", [Spec(given, x.shape)], [Spec(wanted, x.shape)])
    result = run_op(model, x)[0]
    assert result.dtype == np.dtype(wanted)
    np.testing.assert_array_equal(result, litert(model, x)[0])


def test_floats_are_bounded_and_nan_is_the_largest_number() -> None:
    x = np.array([-1e30, -300.7, -1.9, 1.9, 300.7, 1e30, np.nan], np.float32)
    expected = {
        "int8": [-128, -128, -1, 1, 127, 127, 127],
        "uint8": [0, 0, 0, 1, 255, 255, 255],
        "int32": [-(2**31), -300, -1, 1, 300, 2**31 - 1, 2**31 - 1],
        "int64": [-(2**63), -300, -1, 1, 300, 2**63 - 1, 2**63 - 1],
        "bool": [True] * 7,
    }
    for wanted, numbers in expected.items():
        model = one_op_model("CAST", [Spec("float32", [7])], [Spec(wanted, [7])])
        assert run_op(model, x)[0].tolist() == numbers


def test_bfloat16() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x = np.array([1.5, -300, 3e38, np.nan], np.float32).astype(bfloat16)
    model = one_op_model("CAST", [Spec(bfloat16, [4])], [Spec("int8", [4])])
    assert run_op(model, x)[0].tolist() == [1, -128, 127, 127]
    model = one_op_model("CAST", [Spec("float64", [2])], [Spec(bfloat16, [2])])
    assert run_op(model, np.array([1.00390625, 3.0]))[0].astype(np.float64).tolist() == [1.0, 3.0]


@pytest.mark.parametrize(("type", "low", "high"), [("INT4", -8, 7), ("INT2", -2, 1), ("UINT4", 0, 15)])
def test_packed_types_are_cast_from_and_to_floats(type: str, low: int, high: int) -> None:
    x = np.array([-100, 1.9, 100, np.nan, low], np.float32)
    model = one_op_model("CAST", [Spec("float32", [5])], [Spec(TensorType[type], [5])])
    packed = run_op(model, x)[0]
    assert packed.tolist() == [low, 1, high, high, low]
    model = one_op_model("CAST", [Spec(TensorType[type], [5], data=packed)], [Spec("float32", [5])])
    assert run_op(model)[0].tolist() == packed.tolist()


def test_bitcast_adds_or_takes_a_dimension() -> None:
    x = np.array([[1.0, -2.0]], np.float32)
    same = one_op_model("BITCAST", [Spec("float32", [1, 2])], [Spec("int32", [1, 2])])
    assert run_op(same, x)[0].tolist() == [[0x3F800000, -0x40000000]]
    narrow = one_op_model("BITCAST", [Spec("float32", [1, 2])], [Spec("uint8", [1])])
    octets = run_op(narrow, x)[0]
    assert octets.shape == (1, 2, 4)
    wide = one_op_model("BITCAST", [Spec("uint8", [1, 2, 4])], [Spec("float32", [1])])
    np.testing.assert_array_equal(run_op(wide, octets)[0], x)


REFUSED: list[tuple[str, Spec, Spec, str]] = [
    ("CAST", Spec("float32", [2]), Spec("complex128", [2]), "COMPLEX128"),
    ("CAST", Spec("uint64", [2]), Spec("float32", [2]), "UINT64"),
    ("CAST", Spec("float32", [2]), Spec(object, [2]), "STRING"),
    ("CAST", Spec("int8", [2]), Spec(TensorType.INT4, [2]), "INT4 is cast from and to FLOAT32 only"),
    ("BITCAST", Spec("uint8", [2, 3]), Spec("float32", [2]), "last dimension .* must be 4"),
    ("BITCAST", Spec("uint8", []), Spec("float32", []), "last dimension .* must be 4"),
    ("BITCAST", Spec("uint8", [4]), Spec(object, [4]), "STRING"),
]


@pytest.mark.parametrize(("op", "given", "made", "message"), REFUSED)
def test_refuses(op: str, given: Spec, made: Spec, message: str) -> None:
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model(op, [given], [made]), np.zeros(given.shape, given.type))
