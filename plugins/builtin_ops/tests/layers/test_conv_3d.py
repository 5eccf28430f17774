"""CONV_3D and CONV_3D_TRANSPOSE against LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Conv3DOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

CASES = [
    # padding, filter, strides (d, h, w), dilations
    (Padding.SAME, (2, 3, 3), (1, 1, 1), (1, 1, 1)),
    (Padding.VALID, (2, 3, 3), (1, 2, 1), (1, 1, 1)),
    (Padding.SAME, (3, 2, 1), (2, 1, 3), (1, 1, 1)),
    (Padding.SAME, (2, 2, 2), (1, 1, 1), (2, 1, 2)),
    (Padding.VALID, (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    (Padding.VALID, (1, 1, 1), (3, 2, 2), (1, 1, 1)),
]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def options_of(padding: Padding, strides: Any, dilations: Any, **more: Any) -> Conv3DOptions:
    names = ("stride_d", "stride_h", "stride_w", "dilation_d_factor", "dilation_h_factor", "dilation_w_factor")
    return Conv3DOptions(padding=padding, **dict(zip(names, (*strides, *dilations))), **more)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("activation", [ActivationFunctionType.NONE, ActivationFunctionType.RELU6])
@pytest.mark.parametrize(("padding", "taps", "strides", "dilations"), CASES)
def test_conv_3d(
    litert: Callable[..., Any], padding: Any, taps: Any, strides: Any, dilations: Any, activation: Any, constant: bool
) -> None:
    source, weights, bias = normal(2, 5, 6, 7, 3), normal(*taps, 3, 4), normal(4)
    options = options_of(padding, strides, dilations, fused_activation_function=activation)
    operands: list[Any] = [weights, bias] if constant else [Spec("float32", weights.shape), Spec("float32", bias.shape)]
    model = one_op_model("CONV_3D", [Spec("float32", source.shape), *operands], [Spec("float32", (1,) * 5)], options)
    feeds = [source] if constant else [source, weights, bias]
    np.testing.assert_allclose(run_op(model, *feeds)[0], litert(model, *feeds)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("padding", "taps", "strides", "dilations"), CASES)
def test_conv_3d_transpose(
    litert: Callable[..., Any], padding: Any, taps: Any, strides: Any, dilations: Any, constant: bool, bias: bool
) -> None:
    shape = np.array([2, 5, 6, 7, 4], np.int32)
    spans = [(t - 1) * d + 1 for t, d in zip(taps, dilations)]
    sizes = [
        -(-int(n) // s) if padding == Padding.SAME else (int(n) - span) // s + 1 for n, s, span in zip(shape[1:4], strides, spans)
    ]
    source, weights = normal(2, *sizes, 3), normal(*taps, 4, 3)
    given = shape if constant else Spec("int32", (5,))
    operands = [given, weights, Spec("float32", source.shape), *([normal(4)] if bias else [])]
    model = one_op_model("CONV_3D_TRANSPOSE", operands, [Spec("float32", (1,) * 5)], options_of(padding, strides, dilations))
    feeds = [source] if constant else [shape, source]
    np.testing.assert_allclose(run_op(model, *feeds)[0], litert(model, *feeds)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("source", "weights", "options", "message"),
    [
        ((1, 4, 4, 4, 2), (2, 2, 2, 3, 1), {}, "has 2 channels, the filters .* take 3"),
        ((1, 4, 4, 4), (2, 2, 2, 3, 1), {}, "must have 5 dimensions"),
        ((1, 4, 4, 4, 2), (2, 2, 2, 2, 1), {"stride_h": 0}, "stride_height is 0"),
        ((1, 4, 4, 4, 2), (9, 2, 2, 2, 1), {"padding": Padding.VALID}, "covers 9 along the depth"),
    ],
)
def test_conv_3d_refuses(source: Any, weights: Any, options: Any, message: str) -> None:
    options = {"stride_d": 1, "stride_h": 1, "stride_w": 1, **options}
    model = one_op_model(
        "CONV_3D", [Spec("float32", source), normal(*weights)], [Spec("float32", (1,) * 5)], Conv3DOptions(**options)
    )
    with pytest.raises(OpletError, match=message):
        run_op(model, normal(*source))


def test_conv_3d_transpose_refuses_a_shape_that_the_input_does_not_give() -> None:
    options = options_of(Padding.SAME, (2, 2, 2), (1, 1, 1))
    operands: list[Any] = [np.array([1, 9, 4, 4, 2], np.int32), normal(2, 2, 2, 2, 3), Spec("float32", (1, 2, 2, 2, 3))]
    model = one_op_model("CONV_3D_TRANSPOSE", operands, [Spec("float32", (1,) * 5)], options)
    with pytest.raises(OpletError, match=r"belongs to an input of \[5, 2, 2\]"):
        run_op(model, normal(1, 2, 2, 2, 3))


def test_conv_3d_transpose_without_padding_is_cut_off_where_its_output_ends() -> None:
    options = options_of(Padding.VALID, (2, 2, 2), (1, 1, 1))
    source, weights = normal(1, 2, 2, 2, 3), normal(3, 3, 3, 2, 3)

    def run(*shape: int) -> Any:
        operands: list[Any] = [np.array(shape, np.int32), weights, Spec("float32", source.shape)]
        return run_op(one_op_model("CONV_3D_TRANSPOSE", operands, [Spec("float32", (1,) * 5)], options), source)[0]

    covered = run(1, 5, 5, 5, 2)
    np.testing.assert_array_equal(run(1, 4, 3, 1, 2), covered[:, :4, :3, :1])
    larger = run(1, 6, 5, 7, 2)
    np.testing.assert_array_equal(larger[:, :5, :, :5], covered)
    assert not larger[:, 5:].any()
    assert not larger[:, :, :, 5:].any()
