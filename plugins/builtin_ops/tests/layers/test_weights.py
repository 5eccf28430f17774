"""Weights are transposed and summed exactly, however many there are; what biases count for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.schema.options import Conv2DOptions, DepthwiseConv2DOptions, FullyConnectedOptions
from oplet_builtin_ops.layers.weights import row_sums, sums_and_widths, transposed
from oplet_testing.one_op import Spec, one_op_model, run_op


@pytest.mark.parametrize("shape", [(1, 3, 5), (2, 300, 250), (1, 1000, 70), (1, 64, 2000)])
def test_transposes_are_contiguous_and_of_the_type_asked_for(shape: tuple[int, ...]) -> None:
    matrices = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    turned = transposed(matrices, np.float32)
    assert turned.dtype == np.float32
    assert turned.flags.c_contiguous
    assert np.array_equal(turned, matrices.transpose(0, 2, 1))


@pytest.mark.parametrize("type", [np.int8, np.uint8, np.int32])
@pytest.mark.parametrize("depth", [0, 7, 1 << 16, (1 << 16) + 3])
def test_sums_of_rows_are_exact(type: type[np.generic], depth: int) -> None:
    lowest, highest = np.iinfo(type).min, np.iinfo(type).max  # type: ignore[type-var]
    rows = np.stack([np.full(depth, lowest), np.full(depth, highest), np.full(depth, 1)]).astype(type)
    assert row_sums(rows).tolist() == rows.astype(np.int64).sum(axis=1).tolist()
    assert row_sums(rows).dtype == np.int64


@pytest.mark.parametrize("depth", [0, 7, 300, 1 << 16, (1 << 16) + 3])
def test_sums_and_widths_of_rows_of_int8_are_exact(depth: int) -> None:
    random = np.random.default_rng(depth).integers(-128, 128, (300 if depth < 400 else 1, depth))
    rows = np.concatenate([random, np.full((1, depth), -128), np.full((1, depth), 127)]).astype(np.int8)
    sums, widths = sums_and_widths(rows)
    assert sums.dtype == widths.dtype == np.int64
    assert sums.tolist() == rows.sum(axis=1, dtype=np.int64).tolist()
    assert widths.tolist() == np.abs(rows.astype(np.int64)).sum(axis=1).tolist()
    assert sums_and_widths(rows[:0])[1].shape == (0,)


@pytest.mark.parametrize("scale", [0.0005, 0.1, 30.0])
@pytest.mark.parametrize("type", ["int8", "uint8"])
@pytest.mark.parametrize("op", ["FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"])
def test_biases_count_in_the_scale_of_the_sums_whatever_their_own_is_as_in_litert(
    op: str, type: str, scale: float, litert: Callable[..., Any]
) -> None:
    shapes = {
        "FULLY_CONNECTED": ([2, 4], [4, 4], [2, 4]), "CONV_2D": ([1, 2, 1, 4], [4, 1, 1, 4], [1, 2, 1, 4]),
        "DEPTHWISE_CONV_2D": ([1, 2, 1, 4], [1, 1, 1, 4], [1, 2, 1, 4]),
    }  # fmt: skip
    options = {
        "FULLY_CONNECTED": FullyConnectedOptions(), "CONV_2D": Conv2DOptions(stride_w=1, stride_h=1),
        "DEPTHWISE_CONV_2D": DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1),
    }  # fmt: skip
    given, weights, made = shapes[op]
    rng, bias = np.random.default_rng(4), np.array([100, -1000, 3000, 0], np.int32)
    x, w = (rng.integers(1, 256, shape).astype(np.uint8).view(type) for shape in (given, weights))
    inputs = [
        Spec(type, given, 0.05, 3),
        Spec(type, weights, 0.01, 128 if type == "uint8" else 0, data=w),
        Spec("int32", [4], scale, 0, data=bias),
    ]
    model = one_op_model(op, inputs, [Spec(type, made, 0.3, 1)], options[op])
    np.testing.assert_array_equal(run_op(model, x)[0], litert(model, x, kernels=None)[0])


@pytest.mark.parametrize("type", ["float32", "int8"])
def test_a_row_s_bias_may_have_a_zero_point_which_counts_for_nothing_as_in_litert(type: str, litert: Callable[..., Any]) -> None:
    integer = "int32" if type == "int8" else "float32"
    scales = [(0.05, 3), (0.01, 0), (0.3, 1)] if type == "int8" else [(None, None)] * 3
    x, w = np.arange(8).reshape(2, 4).astype(type), np.arange(-6, 6).reshape(3, 4).astype(type)
    inputs = [
        Spec(type, [2, 4], *scales[0]),
        Spec(type, [3, 4], *scales[1], data=w),
        Spec(integer, [3], 0.0005, 7, data=np.array([5, -9, 3], integer)),
    ]
    model = one_op_model("FULLY_CONNECTED", inputs, [Spec(type, [2, 3], *scales[2])], FullyConnectedOptions())
    np.testing.assert_array_equal(run_op(model, x)[0], litert(model, x, kernels=None)[0])
