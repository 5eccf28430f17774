"""Layers with weights: convolutions and matrix products, in float, quantized and hybrid arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet.schema.enums import ActivationFunctionType, FullyConnectedOptionsWeightsFormat, Padding
from oplet.schema.options import (
    BatchMatMulOptions,
    Conv2DOptions,
    Conv3DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    TransposeConvOptions,
)  # fmt: skip

from ..harness import Case
from ..strategies import F32, I4, I8, I16, I32, I64, U8, Arg, Draw, TensorType, out, spec

#: How a layer computes: the type of its input and that of its weights.
KINDS = ((F32, F32), (I8, I8), (U8, U8), (I16, I8), (F32, I8), (I8, I4), (F32, I4), (F32, U8))
#: Weights quantized per layer in hybrid arithmetic round the input, whose scale depends on all its values.
HYBRID = 2e-3


def activation(draw: Draw, *codes: int) -> ActivationFunctionType:
    """A fused activation."""
    return ActivationFunctionType(draw.pick(*(codes or (0, 1, 2, 3))))


def weights(draw: Draw, type: TensorType, shape: Sequence[int], channels: int, axis: int, per_channel: bool | None = None) -> Arg:
    """Constant weights, in quantized types per layer or per channel."""
    arg = draw.tensor(type, shape, -1 if type is F32 else None, 1 if type is F32 else None, constant=True, quantized=False)
    arg.flexible = False
    if type in (I8, U8):  # LiteRT's hybrid kernels add up -128, which 128 is there too, wrongly
        avoid = -128 if type is I8 else 128
        arg.data = np.where(arg.values() == avoid, arg.values() + 1, arg.values()).astype(arg.values().dtype)
    if type is U8:
        arg.scale, arg.zero_point = draw.pick(0.02, 0.11, 0.5), draw.pick(128, 0, 255, 101)
    elif type in (I8, I4):
        per_channel = draw.flag() if per_channel is None else per_channel
        count = channels if per_channel else 1
        arg.scale, arg.axis = draw.rng.choice([0.01, 0.02, 0.05, 0.0078125], count).tolist(), axis if per_channel else 0
        arg.zero_point = [0] * count
    return arg


def bias(draw: Draw, x: Arg, w: Arg, channels: int, required: bool = False) -> Arg | None:
    """A bias of the type and the scales that the layer's arithmetic asks for, or none where it may be left out."""
    if not required and draw.seldom(4):
        return None
    if x.type is F32:
        arg = draw.tensor(F32, (channels,), -2, 2, constant=not draw.seldom(8), quantized=False)
    else:
        arg = draw.tensor(I64 if x.type is I16 else I32, (channels,), -4000, 4000, constant=True, quantized=False)
        arg.scale = (np.atleast_1d(np.float32(w.scale)) * np.float32(x.scale)).tolist()
        arg.zero_point = [0] * len(arg.scale)
    arg.flexible = False
    return arg


def result(draw: Draw, x: Arg, depth: int) -> Arg:
    """An output whose scale makes use of most of the range."""
    if x.type is F32:
        return out(F32)
    scale = draw.pick(0.05, 0.5, 1.7, 0.003) * (depth**0.5)
    zero_point = 0 if x.type is I16 else draw.pick(0, 3, 127) if x.type is U8 else draw.pick(0, -128, 5)
    return Arg(x.type, (), scale=scale, zero_point=zero_point)


def tolerances(x: Arg, w: Arg) -> dict[str, float]:
    """Float sums differ in their order; hybrid ones in the rounding of the input."""
    return {"rtol": HYBRID, "atol": HYBRID} if x.type is F32 and w.type is not F32 else {"rtol": 1e-4, "atol": 1e-5}


def _image(draw: Draw, type: TensorType, channels: int, largest: int = 7) -> Arg:
    x = draw.tensor(type, (draw.integer(1, 2), draw.integer(1, largest), draw.integer(1, largest), channels), constant=False)
    if x.scale is not None and x.type is not I16:
        x.scale = draw.pick(0.02, 0.11, 0.5)
    return x


@spec("CONV_2D", weight=4)
def conv_2d(draw: Draw) -> Case:
    kind, filter_kind = draw.pick(*KINDS)
    groups = draw.pick(1, 1, 1, 2, 3) if (kind, filter_kind) != (F32, U8) else 1
    inner, channels = draw.integer(1, 4), groups * draw.integer(1, 3)
    x = _image(draw, kind, inner * groups)
    height, width = draw.integer(1, 3), draw.integer(1, 3)
    w = weights(
        draw, filter_kind, (channels, height, width, inner), channels, 0, True if kind is F32 and not draw.seldom(4) else None
    )
    options = Conv2DOptions(
        padding=draw.pick(Padding.SAME, Padding.VALID), stride_w=draw.integer(1, 3), stride_h=draw.integer(1, 3),
        fused_activation_function=activation(draw), dilation_w_factor=draw.pick(1, 1, 2, 3),
        dilation_h_factor=draw.pick(1, 1, 2, 3),
    )  # fmt: skip
    if draw.seldom(30):
        options.stride_h = 0
    y = result(draw, x, height * width * inner)
    b = bias(draw, x, w, channels, required=not draw.seldom())
    return draw.one_op([x, w, b] if b or draw.flag() else [x, w], [y], options, **tolerances(x, w))


@spec("DEPTHWISE_CONV_2D", weight=3)
def depthwise_conv_2d(draw: Draw) -> Case:
    kind, filter_kind = draw.pick(*KINDS)
    inner, multiplier = draw.integer(1, 4), draw.integer(1, 3)
    x = _image(draw, kind, inner)
    height, width = draw.integer(1, 3), draw.integer(1, 3)
    hybrid = kind is F32 and filter_kind is not F32
    w = weights(draw, filter_kind, (1, height, width, inner * multiplier), inner * multiplier, 3, True if hybrid else None)
    options = DepthwiseConv2DOptions(
        padding=draw.pick(Padding.SAME, Padding.VALID), stride_w=draw.integer(1, 3), stride_h=draw.integer(1, 3),
        depth_multiplier=multiplier, fused_activation_function=activation(draw), dilation_w_factor=draw.pick(1, 1, 2),
        dilation_h_factor=draw.pick(1, 1, 2),
    )  # fmt: skip
    if draw.seldom(30):
        options.depth_multiplier = multiplier + 1
    b = bias(draw, x, w, inner * multiplier, required=True)  # LiteRT's optimized kernels die without one
    y = result(draw, x, height * width)
    return draw.one_op([x, w, b], [y], options, **tolerances(x, w))


@spec("TRANSPOSE_CONV", weight=3)
def transpose_conv(draw: Draw) -> Case:
    kind, filter_kind = draw.pick((F32, F32), (I8, I8), (U8, U8), (I16, I8), (F32, I8))
    inner, channels = draw.integer(1, 3), draw.integer(1, 3)
    x = _image(draw, kind, inner, 5)
    height, width = draw.integer(1, 3), draw.integer(1, 3)
    w = weights(draw, filter_kind, (channels, height, width, inner), channels, 0)
    stride_h, stride_w = draw.integer(1, 3), draw.integer(1, 3)
    same = draw.flag()
    rows = x.shape[1] * stride_h if same else (x.shape[1] - 1) * stride_h + height
    columns = x.shape[2] * stride_w if same else (x.shape[2] - 1) * stride_w + width
    options = TransposeConvOptions(
        padding=Padding.SAME if same else Padding.VALID, stride_w=stride_w, stride_h=stride_h,
        fused_activation_function=activation(draw),
    )  # fmt: skip
    shape = [x.shape[0], rows, columns, channels]
    if draw.seldom(30):
        shape[3] += 1
    b = bias(draw, x, w, channels)
    y = result(draw, x, height * width * inner)
    x.flexible = False
    args = [draw.given(shape), w, x]
    return draw.one_op([*args, b] if b else args, [y], options, **tolerances(x, w))


def _volume(draw: Draw) -> dict[str, object]:
    return {
        "padding": draw.pick(Padding.SAME, Padding.VALID), "fused_activation_function": activation(draw),
        "stride_d": draw.integer(1, 2), "stride_w": draw.integer(1, 2), "stride_h": draw.integer(1, 2),
    }  # fmt: skip


@spec("CONV_3D")
def conv_3d(draw: Draw) -> Case:
    inner, channels = draw.integer(1, 3), draw.integer(1, 3)
    x = draw.tensor(F32, (draw.integer(1, 2), *draw.dims(3), inner), constant=False)
    w = draw.tensor(F32, (*draw.dims(3, 1, 3), inner, channels), -1, 1, constant=draw.flag())
    w.flexible = False
    factors = {f"dilation_{side}_factor": draw.pick(1, 1, 2) for side in "dwh"}
    options = Conv3DOptions(**_volume(draw), **factors)
    b = bias(draw, x, w, channels)
    return draw.one_op([x, w, b] if b else [x, w], [out(F32)], options, **tolerances(x, w))


@spec("CONV_3D_TRANSPOSE")
def conv_3d_transpose(draw: Draw) -> Case:
    inner, channels = draw.integer(1, 3), draw.integer(1, 3)
    x = draw.tensor(F32, (draw.integer(1, 2), *draw.dims(3, 1, 3), inner), constant=False)
    w = draw.tensor(F32, (*draw.dims(3, 1, 3), channels, inner), -1, 1, constant=draw.flag())
    options = Conv3DOptions(**_volume(draw))
    strides = (options.stride_d, options.stride_h, options.stride_w)
    valid = options.padding is Padding.VALID
    room = [(n - 1) * s + k if valid else n * s for n, s, k in zip(x.shape[1:4], strides, w.shape[:3])]
    x.flexible = w.flexible = False
    b = bias(draw, x, w, channels)
    args = [draw.given([x.shape[0], *room, channels]), w, x]
    return draw.one_op([*args, b] if b else args, [out(F32)], options, **tolerances(x, w))


@spec("FULLY_CONNECTED", weight=4)
def fully_connected(draw: Draw) -> Case:
    kind, filter_kind = draw.pick(*KINDS)
    depth, units = draw.pick(1, 3, 4, 7, 16, 20), draw.pick(1, 2, 4, 5)
    if filter_kind is I4 and depth % 2 and not draw.seldom(4):
        depth += 1  # LiteRT packs each row of hybrid weights to whole bytes
    leading = draw.dims(draw.integer(1, 3), 1, 3)
    x = draw.tensor(kind, (*leading, depth), constant=False)
    if kind in (I8, U8):
        x.scale = draw.pick(0.02, 0.11, 0.5)
    w = weights(draw, filter_kind, (units, depth), units, 0)
    if filter_kind is F32 and draw.seldom(5):
        w.constant = False
    options = FullyConnectedOptions(
        fused_activation_function=activation(draw), keep_num_dims=draw.flag(), asymmetric_quantize_inputs=draw.flag(),
        weights_format=FullyConnectedOptionsWeightsFormat.DEFAULT,
    )  # fmt: skip
    b = bias(draw, x, w, units)
    y = result(draw, x, depth)
    if kind is U8 and draw.seldom(6):
        y = Arg(I16, (), scale=0.01, zero_point=0)
    return draw.one_op([x, w, b], [y], options, **tolerances(x, w))


@spec("BATCH_MATMUL", weight=3)
def batch_matmul(draw: Draw) -> Case:
    kind, second = draw.pick((F32, F32), (I8, I8), (I16, I16), (F32, I8), (I32, I32))
    rows, depth, columns = draw.dims(3)
    batch = draw.broadcast(high=3, largest=3)
    hybrid = kind is F32 and second is I8
    if hybrid:  # with more batch dimensions, or with broadcast ones, LiteRT takes scales of other rows
        batch = [batch[0][-1:]] * 2
    adj_x, adj_y = draw.flag(), draw.flag()
    x = draw.tensor(kind, (*batch[0], *((depth, rows) if adj_x else (rows, depth))))
    y = draw.tensor(second, (*batch[1], *((columns, depth) if adj_y else (depth, columns))), constant=hybrid, symmetric=True)
    x.flexible = y.flexible = False
    if kind is I16:  # the rescaled sums must fit 32 bits
        x.scale, y.scale = draw.pick(0.0001, 0.001), draw.pick(0.0001, 0.0005)
    options = BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y, asymmetric_quantize_inputs=draw.flag())
    z = result(draw, x, depth) if kind in (I8, I16) else out(kind if kind is not I8 else F32)
    if kind is I8 and draw.seldom(6):
        z = out(I32)
    return draw.one_op([x, y], [z], options, **tolerances(x, y))
