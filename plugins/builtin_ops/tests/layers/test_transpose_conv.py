from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import TransposeConvOptions
from oplet.testing import one_op_model, run_op
from oplet.testing.one_op import Spec

Function = Callable[..., Any]

SHAPES = [  # output, source, filters, stride, padding
    ((1, 8, 10, 3), (1, 4, 5, 2), (3, 2, 2, 2), (2, 2), Padding.SAME),
    ((2, 9, 10, 3), (2, 5, 5, 4), (3, 3, 3, 4), (2, 2), Padding.SAME),
    ((1, 9, 7, 3), (1, 4, 3, 2), (3, 3, 3, 2), (2, 2), Padding.VALID),
    ((1, 6, 6, 2), (1, 6, 6, 3), (2, 4, 3, 3), (1, 1), Padding.SAME),
    ((1, 12, 9, 2), (1, 4, 5, 3), (2, 2, 4, 3), (3, 2), Padding.SAME),
    ((1, 12, 6, 2), (1, 4, 3, 3), (2, 2, 1, 3), (3, 2), Padding.VALID),
    ((1, 60, 80, 8), (1, 30, 40, 16), (8, 3, 3, 16), (2, 2), Padding.SAME),
]


def options(stride: tuple[int, int], padding: Padding, activation: int = 0) -> TransposeConvOptions:
    return TransposeConvOptions(
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        fused_activation_function=ActivationFunctionType(activation),
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_results_equal_litert_s(
    shapes: Any, kind: str, bias: bool, litert: Function, layer: Function, assert_equal: Function
) -> None:
    output, source, weights, stride, padding = shapes
    for activation in (ActivationFunctionType.NONE, ActivationFunctionType.RELU):
        before = (np.array(output, np.int32),)
        whole = options(stride, padding, activation)
        model, feeds = layer("TRANSPOSE_CONV", kind, source, weights, whole, before=before, bias=bias, version=4)
        assert_equal(kind, run_op(model, *feeds)[0], litert(model, *feeds)[0])


def test_the_output_s_shape_may_arrive_at_run_time(kind: str, litert: Function, layer: Function, assert_equal: Function) -> None:
    shape = np.array([1, 7, 9, 3], np.int32)
    whole = options((2, 2), Padding.SAME)
    before = (Spec("int32", (4,)),)
    model, feeds = layer("TRANSPOSE_CONV", kind, (1, 4, 5, 2), (3, 3, 3, 2), whole, before=before, version=4)
    assert_equal(kind, run_op(model, shape, *feeds)[0], litert(model, shape, *feeds)[0])


@pytest.mark.parametrize(
    ("shape", "weights", "stride", "reason"),
    [
        ([1, 8, 8, 3], (3, 2, 2, 5), (2, 2), "same last dimension"),
        ([2, 8, 8, 3], (3, 2, 2, 4), (2, 2), "make 1 maps of 3 channels"),
        ([1, 9, 8, 3], (3, 2, 2, 4), (2, 2), "belongs to an input of 5 x 4"),
        ([1, 0, 8, 3], (3, 2, 2, 4), (2, 2), "above zero"),
        ([1, 8, 8, 3], (3, 2, 2, 4), (0, 2), "stride_h is 0"),
        ([1, 8, 8], (3, 2, 2, 4), (2, 2), "must hold 4 values"),
    ],
)
def test_a_wrong_model_is_refused(shape: list[int], weights: Any, stride: tuple[int, int], reason: str) -> None:
    specs = [np.array(shape, np.int32), np.zeros(weights, np.float32), Spec("float32", (1, 4, 4, 4))]
    model = one_op_model("TRANSPOSE_CONV", specs, [Spec("float32", (1, 1, 1, 1))], options(stride, Padding.SAME))
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros((1, 4, 4, 4), np.float32))
