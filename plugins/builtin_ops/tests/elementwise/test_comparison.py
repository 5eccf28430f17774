"""The six comparisons: plain numbers, strings, scales that differ, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import PrepareError
from oplet_testing.one_op import Spec, one_op_model, run_op

UFUNCS: dict[str, np.ufunc] = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}
SHAPES = [((2, 3), (2, 3)), ((2, 3, 4), (4,)), ((), (3,)), ((2, 1, 3, 1, 2), (1, 4, 1, 5, 2)), ((0, 3), (1, 3))]


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "int32", "int64"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_plain_numbers_compare_and_broadcast(op: str, dtype: str, shapes: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (np.asarray(rng.integers(-2, 3, shape)).astype(dtype) for shape in shapes)
    expected = UFUNCS[op](a, b)
    # The declared type is corrected.
    model = one_op_model(op, [Spec(dtype, a.shape), Spec(dtype, b.shape)], [Spec(dtype, expected.shape)])
    result = run_op(model, a, b)[0]
    assert result.dtype == np.bool_
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("op", "expected"), [("EQUAL", [True, False, False]), ("NOT_EQUAL", [False, True, True])])
def test_strings_compare_as_bytes(op: str, expected: list[bool]) -> None:
    model = one_op_model(op, [Spec(object, [3]), np.array([b"one"], object)], [Spec("bool", [3])])
    assert run_op(model, np.array([b"one", b"", b"oneone"], object))[0].tolist() == expected


@pytest.mark.parametrize("op", ["EQUAL", "NOT_EQUAL"])
def test_booleans_compare(op: str) -> None:
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    model = one_op_model(op, [Spec("bool", [4]), Spec("bool", [4])], [Spec("bool", [4])])
    np.testing.assert_array_equal(run_op(model, a, b)[0], UFUNCS[op](a, b))


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("scales", [(0.5, 0.5), (0.5, 0.25), (0.02, 0.02), (0.0001, 0.0001), (1.5, 1.5), (300.0, 0.1)])
@pytest.mark.parametrize("broadcast", [False, True])
def test_quantized_values_equal_litert(litert: Any, op: str, dtype: Any, scales: Any, broadcast: bool) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    a = np.linspace(info.min, info.max, 256).astype(dtype)
    b = a[100:101] if broadcast else rng.permutation(a)
    b[: len(b) // 2] = a[: len(b) // 2]
    specs = [Spec(dtype, x.shape, scale, point) for x, scale, point in zip((a, b), scales, (0, 0 if scales[0] == 0.02 else 7))]
    model = one_op_model(op, specs, [Spec("bool", a.shape)])
    np.testing.assert_array_equal(run_op(model, a, b)[0], litert(model, a, b)[0])


def test_a_scale_of_1_compares_though_litert_dies_of_it() -> None:
    tensors = [Spec("int8", [3], 1.0, 0), Spec("int8", [3], 1.0, 1)]
    model = one_op_model("LESS", tensors, [Spec("bool", [3])])
    assert run_op(model, np.array([4, 5, 6], np.int8), np.array([6, 6, 6], np.int8))[0].tolist() == [True, False, False]


@pytest.mark.parametrize("op", ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"])
@pytest.mark.parametrize("type", ["int8", "uint8", "int16", "uint16", "uint32", "uint64", "int32", "int64"])
def test_integers_without_scales_are_compared_as_they_are(op: str, type: str) -> None:
    info = np.iinfo(type)
    a = np.array([[info.min, 0, 1, info.max], [1, 1, 2, 0]], type)
    b = np.array([[1], [0]], type)
    model = one_op_model(op, [Spec(type, a.shape), Spec(type, b.shape)], [Spec("bool", a.shape)])
    np.testing.assert_array_equal(run_op(model, a, b)[0], getattr(np, op.lower())(a, b))


REFUSED: list[tuple[str, Spec, Spec, str]] = [
    ("LESS", Spec(object, [2]), Spec(object, [2]), "STRING"),
    ("LESS", Spec("bool", [2]), Spec("bool", [2]), "BOOL"),
    ("EQUAL", Spec("complex64", [2]), Spec("complex64", [2]), "COMPLEX64"),
    ("EQUAL", Spec("float32", [2]), Spec("int32", [2]), "same type.*FLOAT32.*INT32"),
    ("EQUAL", Spec("float32", [2, 3]), Spec("float32", [2]), r"\[2, 3\] and \[2\], are not broadcastable"),
    ("GREATER", Spec("int8", [2], 1.0, 0), Spec("int8", [2]), "no quantization"),
    ("GREATER", Spec("int8", [2], 1.0, 0), Spec("int8", [2], 0.0, 0), "scale 0"),
]


@pytest.mark.parametrize(("op", "a", "b", "message"), REFUSED)
def test_refuses(op: str, a: Spec, b: Spec, message: str) -> None:
    feeds = [np.full(spec.shape, b"", object) if spec.type is object else np.zeros(spec.shape, spec.type) for spec in (a, b)]
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model(op, [a, b], [Spec("bool", [2])]), *feeds)
