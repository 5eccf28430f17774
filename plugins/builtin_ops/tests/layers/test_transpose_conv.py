"""TRANSPOSE_CONV."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import TransposeConvOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

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


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_the_batch_of_floats_is_the_input_s_whatever_a_constant_shape_says(
    batch: int, kind: str, litert: Function, layer: Function
) -> None:
    """TensorFlow's converter writes 0 for a free one; XNNPACK reads the rest of the shape only, and rounds integers in a way of its own."""
    arguments = "TRANSPOSE_CONV", kind, (2, 4, 5, 2), (3, 2, 2, 2), options((2, 2), Padding.SAME)
    model, feeds = layer(*arguments, before=(np.array([batch, 8, 10, 3], np.int32),), version=4)
    if kind != "float":
        with pytest.raises(OpletError, match="make 2 maps of 3 channels"):
            run_op(model, *feeds)
        return
    right, _ = layer(*arguments, before=(np.array([2, 8, 10, 3], np.int32),), version=4)
    found = run_op(model, *feeds)[0]
    np.testing.assert_array_equal(found, run_op(right, *feeds)[0])
    np.testing.assert_allclose(found, litert(model, *feeds, kernels=None)[0], rtol=1e-5, atol=1e-5)


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
        ([1, 8, 8, 4], (3, 2, 2, 4), (2, 2), "make 1 maps of 3 channels"),
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


def whole(source: Any, weights: Any, stride: int) -> Any:
    """All that the input covers."""
    (batch, height, width, _), (filters, rows, columns, _) = source.shape, weights.shape
    found = np.zeros((batch, (height - 1) * stride + rows, (width - 1) * stride + columns, filters), np.float64)
    for y, x in np.ndindex(height, width):
        stamp = np.einsum("nc,oijc->nijo", source[:, y, x], weights, dtype=np.float64)
        found[:, y * stride : y * stride + rows, x * stride : x * stride + columns] += stamp
    return found


SIZES = [(2, 3, 4), (3, 2, 3), (1, 2, 3), (4, 1, 3), (3, 3, 1)]


@pytest.mark.parametrize(("taps", "stride", "length"), SIZES)
@pytest.mark.parametrize("constant", [True, False])
def test_without_padding_the_output_may_have_any_size(taps: int, stride: int, length: int, constant: bool) -> None:
    rng = np.random.default_rng(0)
    source, weights = (rng.normal(size=shape).astype(np.float32) for shape in ((2, length, length, 3), (2, taps, taps, 3)))
    bias = np.array([0.5, -2], np.float32)
    covered = whole(source, weights, stride)
    size = covered.shape[1]
    for rows, columns in ((size - 1, size + 2), (1, size - 1), (size + 1, 1), (size + 3, size)):
        shape = np.array([2, rows, columns, 2], np.int32)
        given = shape if constant else Spec("int32", (4,))
        specs = [given, weights, Spec("float32", source.shape), bias]
        model = one_op_model("TRANSPOSE_CONV", specs, [Spec("float32", (1,) * 4)], options((stride, stride), Padding.VALID))
        expected = np.zeros(shape)
        expected[:, :size, :size] = covered[:, :rows, :columns]
        found = run_op(model, *([] if constant else [shape]), source)[0]
        np.testing.assert_allclose(found, expected + bias, rtol=1e-5, atol=1e-5)


def test_a_cropped_output_is_the_corner_of_the_whole_one(kind: str, litert: Function, layer: Function) -> None:
    whole = options((2, 2), Padding.VALID)
    arguments = "TRANSPOSE_CONV", kind, (1, 3, 3, 2), (3, 3, 3, 2), whole
    cropped, feeds = layer(*arguments, before=(np.array([1, 6, 5, 3], np.int32),), version=4)
    full, _ = layer(*arguments, before=(np.array([1, 7, 7, 3], np.int32),), version=4)
    np.testing.assert_array_equal(run_op(cropped, *feeds)[0], run_op(full, *feeds)[0][:, :6, :5])


@pytest.mark.parametrize("beyond", [-3, -2, -1, 0, 1, 2, 3])
@pytest.mark.parametrize(("taps", "stride", "length"), [(2, 2, 3), (3, 2, 4), (4, 2, 10), (5, 3, 3), (3, 3, 4), (4, 1, 5)])
def test_the_shape_asked_for_is_the_corner_of_what_xnnpack_gives(
    taps: int, stride: int, length: int, beyond: int, litert: Function
) -> None:
    """TensorFlow's converter asks for `stride * length` where JAX pads `taps - 1` before and `stride - 1` behind (its SAME).

    XNNPACK takes from the shape only what is left of it, divided by the stride; LiteRT's other kernels refuse most of them.
    """
    rng = np.random.default_rng(0)
    source, weights = (rng.normal(size=shape).astype(np.float32) for shape in ((1, length, length, 3), (2, taps, taps, 3)))
    covered = (length - 1) * stride + taps
    asked = covered + beyond
    if asked < taps:
        pytest.skip("XNNPACK refuses less than one filter")
    shape = np.array([1, asked, asked, 2], np.int32)
    model = one_op_model(
        "TRANSPOSE_CONV",
        [shape, weights, Spec("float32", source.shape)],
        [Spec("float32", shape.tolist())],
        options((stride, stride), Padding.VALID),
    )
    [found], [theirs] = run_op(model, source), litert(model, source, kernels=None)
    assert found.shape == (1, asked, asked, 2)
    assert theirs.shape == (1, *(covered + (asked - taps) % stride,) * 2, 2)
    common = min(asked, theirs.shape[1])
    np.testing.assert_allclose(found[:, :common, :common], theirs[:, :common, :common], rtol=1e-5, atol=1e-5)
    assert not found[:, common:].any()
    assert not found[:, :, common:].any()


def test_an_input_without_columns_gives_zeros() -> None:
    operands = [np.array([1, 3, 4, 2], np.int32), np.ones((2, 2, 2, 3), np.float32), Spec("float32", [1, 2, 0, 3])]
    options = TransposeConvOptions(padding=Padding.VALID, stride_h=1, stride_w=1)
    model = one_op_model("TRANSPOSE_CONV", operands, [Spec("float32", [1, 3, 4, 2])], options)
    assert not run_op(model, np.zeros((1, 2, 0, 3), np.float32), plugins=["builtin_ops"])[0].any()
