from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

QUANTIZED = {"scale": 0.5, "zero_point": 7}


@pytest.mark.parametrize("paddings_type", ["int32", "int64", "int8", "int16"])
@pytest.mark.parametrize("type", ["float32", "int32", "int64", "bool", "float16"])
def test_pad_puts_zeros_around(type: str, paddings_type: str) -> None:
    values = np.arange(1, 7).reshape(2, 3).astype(type)
    paddings = [[1, 0], [2, 3]]
    model = one_op_model("PAD", [Spec(type, (2, 3)), np.array(paddings, paddings_type)], [Spec(type, (3, 8))], version=4)
    (output,) = run_op(model, values)
    np.testing.assert_array_equal(output, np.pad(values, paddings))


@pytest.mark.parametrize("type", ["uint8", "int8"])
def test_quantized_padding_is_the_zero_point(type: str) -> None:
    values = np.array([1, 2], type)
    model = one_op_model(
        "PAD", [Spec(type, (2,), **QUANTIZED), np.array([[1, 2]], np.int32)], [Spec(type, (5,), **QUANTIZED)], version=2
    )
    assert run_op(model, values)[0].tolist() == [7, 1, 2, 7, 7]


def test_padv2_uses_the_value_of_each_run() -> None:
    model = one_op_model(
        "PADV2", [Spec("float32", (1, 2)), np.array([[1, 0], [0, 1]], np.int32), Spec("float32", ())], [Spec("float32", (2, 3))]
    )
    for filling in (4.0, -1.5):
        (output,) = run_op(model, np.array([[1, 2]], np.float32), np.array(filling, np.float32))
        assert output.tolist() == [[filling] * 3, [1, 2, filling]]


def test_paddings_may_arrive_at_run_time() -> None:
    model = one_op_model("PAD", [Spec("float32", (2,)), Spec("int32", (1, 2))], [Spec("float32", (2,))])
    values = np.array([1, 2], np.float32)
    assert run_op(model, values, np.array([[0, 1]], np.int32))[0].tolist() == [1, 2, 0]
    with pytest.raises(OpletError, match=r"\[\[0, -1\]\] must not be negative"):
        run_op(model, values, np.array([[0, -1]], np.int32))


@pytest.mark.parametrize(
    ("paddings", "reason"),
    [([[0, -2]], r"\[\[0, -2\]\] must not be negative"), ([[0, 0], [0, 0]], r"must have shape \[1, 2\]")],
)
def test_impossible_paddings_are_refused(paddings: list[list[int]], reason: str) -> None:
    model = one_op_model("PAD", [Spec("float32", (2,)), np.array(paddings, np.int32)], [Spec("float32", (2,))])
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros(2, np.float32))


def test_a_padding_value_of_another_scale_is_refused() -> None:
    value = Spec("int8", (), scale=0.25, zero_point=7, data=np.array(1, np.int8))
    model = one_op_model(
        "PADV2",
        [Spec("int8", (2,), **QUANTIZED), np.array([[1, 1]], np.int32), value],
        [Spec("int8", (4,), **QUANTIZED)],
        version=2,
    )
    with pytest.raises(OpletError, match=r"scale 0\.25 and zero point 7"):
        run_op(model, np.zeros(2, np.int8))
