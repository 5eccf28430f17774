"""Layers with weights: dead channels, tiny and huge scales of weights, in every scheme that converters write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oplet.schema import options as o
from oplet.schema.enums import ActivationFunctionType, Padding, TensorType

from .conditions import SCALES
from .draft import Draft, Net, Quantized, values


class Scheme(NamedTuple):
    """How a layer is quantized.

    Attributes:
        name: for reports.
        activations: their type.
        weights: their type.
        bias: its type.
        per_channel: whether each output channel has a scale.
    """

    name: str
    activations: str
    weights: str
    bias: str
    per_channel: bool


SCHEMES = (
    Scheme("int8 per channel", "int8", "int8", "int32", True),
    Scheme("int8 per tensor", "int8", "int8", "int32", False),
    Scheme("uint8", "uint8", "uint8", "int32", False),
    Scheme("int16x8", "int16", "int8", "int64", True),
    Scheme("int16x8 per tensor", "int16", "int8", "int64", False),
    Scheme("int16x8 int32 bias", "int16", "int8", "int32", True),
    Scheme("int4 weights", "int8", "int4", "int32", True),
    Scheme("int16x4", "int16", "int4", "int64", True),
    Scheme("hybrid", "float32", "int8", "float32", True),
    Scheme("hybrid per tensor", "float32", "int8", "float32", False),
    Scheme("hybrid int4", "float32", "int4", "float32", True),
)
LAYERS = ("CONV_2D", "CONV_2D 1x1", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "BATCH_MATMUL", "EMBEDDING_LOOKUP")
CHANNELS = 8
#: Beyond it products of floats overflow, in each of LiteRT's ways somewhere else.
_LARGEST = 1e20

#: Scales of the weights: the first channels', then the others'; whether the first channels' filters are all zero.
WEIGHTS = [(0.01, 0.02, False), (0.0, 0.01, True), (0.0, 0.0, True), (0.0, 0.01, False), (1.4e-45, 0.01, True), (1.4e-45, 1.4e-45, True),
           (3.6e-43, 0.01, False), (7.8e-9, 0.01, True), (7.8e-9, 7.8e-9, False), (1e-20, 1e-4, False), (1e10, 0.01, False),
           (1e30, 1e-30, False), (3.4e38, 3.4e38, False)]  # fmt: skip


def layer_nets(label: str) -> Iterator[Callable[[], Net | None]]:
    """What makes the nets of a layer, all of them; None of some that there are not."""
    number = 0
    for scheme in SCHEMES:
        if label == "BATCH_MATMUL" and (scheme.weights == "int4" or scheme.per_channel):
            continue  # see docs/numerics.md
        if label == "DEPTHWISE_CONV_2D" and scheme.name == "hybrid per tensor":
            continue  # LiteRT reads a scale for each channel
        if label == "DEPTHWISE_CONV_2D" and scheme.name == "int16x4":
            continue  # LiteRT reads two packed weights as one
        for weights in WEIGHTS:
            if scheme.activations == "float32" and max(weights[:2]) > _LARGEST:
                continue
            if not scheme.per_channel and weights[0] != weights[1] and weights[2]:
                continue
            for source, output in _activations(scheme):
                number += 1
                yield partial(layer_net, label, scheme, weights, source, output, number)


def _activations(scheme: Scheme) -> Iterator[tuple[float, float]]:
    if scheme.activations == "float32":
        yield 1.0, 1.0
        return
    yield from ((0.05, scale) for scale in SCALES)
    yield from ((scale, 0.05) for scale in SCALES[1:])
    yield from ((scale, scale) for scale in SCALES[1:])


def layer_net(
    label: str, scheme: Scheme, weights: tuple[float, float, bool], source: float, output: float, number: int
) -> Net | None:
    """The net of one layer under one condition."""
    draft = Draft()
    op = label.split()[0]
    shape, filters, result, axis, options = _geometry(label)
    real = scheme.activations == "float32"
    offset = (
        0 if scheme.activations in ("int16", "float32") else (4, -128, 127)[number % 3] + 128 * (scheme.activations == "uint8")
    )
    first = None if real else Quantized(source, offset)
    last = None if real else Quantized(output, 0 if scheme.activations == "int16" else (offset + 5) % 120)
    data, scales = _weights(scheme, filters, axis, weights)
    kernel_zero = 128 if scheme.weights == "uint8" else 0
    kernel = draft.tensor(scheme.weights, filters, Quantized(scales, kernel_zero, axis if np.ndim(scales) else 0), data=data)
    activation = ActivationFunctionType((0, 0, 1, 3)[number % 4])
    if op == "EMBEDDING_LOOKUP":
        if scheme.activations not in ("float32", scheme.weights) or scheme.weights == "uint8":
            return None
        rows = draft.tensor("int32", [3], data=np.array([2, 0, 7], np.int32))
        made = draft.given(
            draft.tensor(
                scheme.activations, [3, filters[1]], None if real else Quantized(scales if np.ndim(scales) == 0 else scales[0], 0)
            )
        )
        draft.node(op, [rows, kernel], [made])
        return draft.net(f"{label} {scheme.name} weights {weights}", op)
    fed = draft.fed_tensor(scheme.activations, shape, first)
    made = draft.given(draft.tensor(scheme.activations, result, last))
    if op == "BATCH_MATMUL":
        draft.node(op, [fed, kernel], [made], options)
    else:
        bias = _bias(draft, scheme, scales, source, number)
        options.fused_activation_function = activation
        if scheme.bias == "int32" and scheme.activations == "int16" and op != "DEPTHWISE_CONV_2D":
            options.quantized_bias_type = TensorType.INT32
        if op == "TRANSPOSE_CONV":
            sizes = draft.tensor("int32", [4], data=np.array(result, np.int32))
            draft.node(op, [sizes, kernel, fed, *([] if bias is None else [bias])], [made], options)
        else:
            draft.node(op, [fed, kernel, bias], [made], options)
    # LiteRT has no reference form of the last one, so that its ways with a follower have little in common.
    alone = op == "DEPTHWISE_CONV_2D" and scheme.weights == "int4"
    if number % 3 == 0 and not alone and last is not None and np.ndim(last.scale) == 0:
        draft.follow(
            ("MEAN", "ADD", "QUANTIZE", "DEQUANTIZE", "CONCATENATION")[number // 3 % 5], scheme.activations, result, made, last
        )
    return draft.net(f"{label} {scheme.name} weights {weights} {source:g} -> {output:g} {activation.name} net {number}", op)


def _geometry(label: str) -> tuple[list[int], list[int], list[int], int, Any]:
    """The shapes of input, weights and output, the axis of the output channels, and the options."""
    if label == "CONV_2D":
        return [1, 4, 4, 3], [CHANNELS, 3, 3, 3], [1, 4, 4, CHANNELS], 0, o.Conv2DOptions(stride_w=1, stride_h=1)
    if label == "CONV_2D 1x1":
        return [1, 4, 4, 16], [CHANNELS, 1, 1, 16], [1, 4, 4, CHANNELS], 0, o.Conv2DOptions(stride_w=1, stride_h=1)
    if label == "DEPTHWISE_CONV_2D":
        options = o.DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
        return [1, 4, 4, CHANNELS], [1, 3, 3, CHANNELS], [1, 4, 4, CHANNELS], 3, options
    if label == "TRANSPOSE_CONV":
        return (
            [1, 3, 3, 4],
            [CHANNELS, 3, 3, 4],
            [1, 6, 6, CHANNELS],
            0,
            o.TransposeConvOptions(stride_w=2, stride_h=2, padding=Padding.SAME),
        )
    if label == "BATCH_MATMUL":
        return [1, 5, 12], [1, 12, CHANNELS], [1, 5, CHANNELS], 2, o.BatchMatMulOptions()
    return [3, 20], [CHANNELS, 20], [3, CHANNELS], 0, o.FullyConnectedOptions()


def _weights(scheme: Scheme, shape: list[int], axis: int, weights: tuple[float, float, bool]) -> tuple[np.ndarray[Any, Any], Any]:
    data = values(scheme.weights, shape, 3)
    if scheme.weights == "int8":
        data = np.maximum(data, -127)
    first, others, zero = weights
    moved = np.moveaxis(data, axis, 0)
    if zero:
        moved[: 3 if scheme.per_channel and first != others else None] = 128 if scheme.weights == "uint8" else 0
    return data, [first] * 3 + [others] * (CHANNELS - 3) if scheme.per_channel else first


def _bias(draft: Draft, scheme: Scheme, scales: Any, source: float, number: int) -> int | None:
    if scheme.bias == "float32":
        return draft.tensor("float32", [CHANNELS], data=np.linspace(-1, 1, CHANNELS, dtype=np.float32))
    with np.errstate(all="ignore"):
        product = np.float32(source) * np.asarray(scales, np.float32)
    if not np.isfinite(product).all():
        product = np.where(np.isfinite(product), product, np.float32(3.4e38))
    quantized = Quantized(product.tolist())
    data = np.zeros(CHANNELS) if number % 2 else np.linspace(-3000, 3000, CHANNELS)
    return draft.tensor(scheme.bias, [CHANNELS], quantized, data=data.astype(scheme.bias))
