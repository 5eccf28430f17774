"""Layers: convolutions, transposed convolutions, products of matrices, pools."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from openvino import opset1
from openvino import opset13 as ov

from oplet import Node, Tensor, TensorType
from oplet.kernels.windows import padding_around
from oplet.schema.enums import FullyConnectedOptionsWeightsFormat, Padding
from oplet.schema.options import (
    BatchMatMulOptions,
    Conv2DOptions,
    Conv3DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Pool2DOptions,
    TransposeConvOptions,
)
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.graph import GraphBuilder, Value
from oplet_openvino_delegate.translators import refuses_rescaling, translates

__all__: list[str] = []


def _padding_of(
    padding: Padding, sizes: Sequence[int], taps: Sequence[int], strides: Sequence[int], dilations: Sequence[int] = (1, 1, 1)
) -> tuple[list[int], list[int]]:
    """Return the padding at the beginning and at the end of each axis; if SAME padding is odd, the end gets the larger part."""
    around = [padding_around(*numbers[:3], padding, numbers[3]) for numbers in zip(sizes, taps, strides, dilations)]
    return [before for before, _ in around], [behind for _, behind in around]


def _refuses_window(padding: Padding, *numbers: int) -> str:
    """Return why window parameters (strides, sizes, dilations) are invalid: one is below 1; "" if they are valid."""
    if padding not in (Padding.SAME, Padding.VALID):
        return f"it has no padding {padding!r}"
    return "" if min(numbers) > 0 else f"one of its strides, sizes or dilations is below 1: {list(numbers)}"


def _refuses_filter(data: Tensor, weights: Tensor, bias: Tensor | None, filters: int) -> str:
    """Return why OpenVINO does not support this combination of image, filter and bias; "" if it does."""
    if data.ndim != 4 or weights.ndim != 4:
        return f"it wants four dimensions, not {data} and {weights}"
    if bias is not None and (not bias.is_constant or bias.size != filters):
        return f"{bias} is no constant bias of {filters} filters"
    if bias is not None and bias.type is TensorType.INT32 and weights.is_constant:
        largest = int(np.abs(bias.data.astype(np.int64)).max(initial=0)) + weights.size // max(filters, 1) * 255 * 128
        if largest >= 2**31:
            return f"sums with {bias} may leave 32 bits, in which LiteRT wraps around and OpenVINO does not"
    return ""


def _real_bias(bias: Tensor, data: Tensor, weights: Tensor) -> NDArray[np.float32]:
    """Return a constant bias as float32: an int32 bias is dequantized by input scale * weight scale."""
    values: NDArray[np.float32] = bias.data
    if bias.type is not TensorType.INT32:
        return values
    scales = weights.quantization.scales if weights.quantization is not None else np.ones(1)
    values = (bias.data * (np.float64(data.scale) * scales.astype(np.float64))).astype(np.float32)
    return values


def _with_bias(graph: GraphBuilder, value: Value, bias: Tensor | None, data: Tensor, weights: Tensor) -> Value:
    """Add a bias, unless it is None, to an NCHW value along the channel axis (1); return the sum."""
    if bias is None:
        return value
    return ov.add(value, graph.constant(_real_bias(bias, data, weights).reshape((1, -1, 1, 1))))


def _ordered(graph: GraphBuilder, weights: Tensor, order: Sequence[int]) -> Value:
    """Return a filter with its dimensions permuted by `order`; a constant is permuted at compile time."""
    if weights.is_constant:
        return graph.arranged(weights, lambda array: array.transpose(order))
    return graph.transposed(graph.value(weights), order)


def _of_windows(name: str, newest: int, options_class: Any, misfit: Callable[[Tensor, Tensor], str], convolve: Any) -> None:
    """Register CONV_2D or DEPTHWISE_CONV_2D.

    Args:
        name: the operator's name.
        newest: the newest version that is translated.
        misfit: returns why a filter does not fit an image; "" if it does.
        convolve: adds the convolution to the graph, from image, filter and OpenVINO's four arguments; returns its value.
    """

    def refuses(node: Node) -> str:
        options, (data, weights), bias = node.options(options_class), node.inputs[:2], node.optional_input(2)
        filters = weights.shape[0 if options_class is Conv2DOptions else -1] if weights.shape else 0
        numbers = (options.stride_h, options.stride_w, options.dilation_h_factor, options.dilation_w_factor)
        return (
            _refuses_filter(data, weights, bias, filters)
            or misfit(data, weights)
            or _refuses_window(options.padding, *numbers)
            or refuses_activation(options.fused_activation_function)
        )

    @translates(name, newest=newest, refuses=refuses, inputs=(2, 3), optional=(2,), layer_of_8_bits=True, bias=2)
    def translate(graph: GraphBuilder, node: Node) -> None:
        options, (data, weights), out = node.options(options_class), node.inputs[:2], node.outputs[0]
        strides = [options.stride_h, options.stride_w]
        dilations = [options.dilation_h_factor, options.dilation_w_factor]
        begin, end = _padding_of(options.padding, data.shape[1:3], weights.shape[1:3], strides, dilations)
        made = convolve(graph, data, weights, (strides, begin, end, dilations))
        total = _with_bias(graph, made, node.optional_input(2), data, weights)
        graph.put_planes(out, activated(total, options.fused_activation_function))


def _misfit(data: Tensor, weights: Tensor) -> str:
    groups = data.shape[3] // weights.shape[3]
    if groups * weights.shape[3] != data.shape[3] or weights.shape[0] % groups:
        return f"{weights} does not fit the channels of {data}"
    return f"{weights} is grouped, and not constant" if groups > 1 and not weights.is_constant else ""


def _convolve(graph: GraphBuilder, data: Tensor, weights: Tensor, window: Sequence[Any]) -> Value:
    """Add a convolution; a filter with fewer channels than the image makes it a grouped one."""
    filters, height, width, channels = weights.shape
    groups = data.shape[3] // channels
    if groups == 1:
        return ov.convolution(graph.planes(data), _ordered(graph, weights, (0, 3, 1, 2)), *window)
    grouped = (groups, filters // groups, channels, height, width)
    taps = graph.arranged(weights, lambda array: array.transpose(0, 3, 1, 2).reshape(grouped))
    return ov.group_convolution(graph.planes(data), taps, *window)


def _depthwise_misfit(data: Tensor, weights: Tensor) -> str:
    fits = weights.shape[0] == 1 and not weights.shape[3] % data.shape[3]
    return "" if fits else f"{weights} does not fit the channels of {data}"


def _convolve_depthwise(graph: GraphBuilder, data: Tensor, weights: Tensor, window: Sequence[Any]) -> Value:
    """Add a convolution with one group per channel."""
    _, height, width, filters = weights.shape
    channels = data.shape[3]
    grouped = (channels, filters // channels, 1, height, width)
    if weights.is_constant:
        taps = graph.arranged(weights, lambda array: array[0].transpose(2, 0, 1).reshape(grouped))
    else:
        taps = graph.reshaped(graph.transposed(graph.value(weights), (3, 0, 1, 2)), grouped)
    return ov.group_convolution(graph.planes(data), taps, *window)


_of_windows("CONV_2D", 8, Conv2DOptions, _misfit, _convolve)
_of_windows("DEPTHWISE_CONV_2D", 7, DepthwiseConv2DOptions, _depthwise_misfit, _convolve_depthwise)


def _strides_3d(options: Conv3DOptions) -> list[int]:
    return [options.stride_d, options.stride_h, options.stride_w]


def _dilations_3d(options: Conv3DOptions) -> list[int]:
    return [options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor]


def _refuses_conv_3d(node: Node) -> str:
    options, (data, weights), bias = node.options(Conv3DOptions), node.inputs[:2], node.optional_input(2)
    if data.ndim != 5 or weights.ndim != 5 or weights.shape[3] != data.shape[4] or not weights.is_constant:
        return f"it wants five dimensions and a constant filter of their channels, not {data} and {weights}"
    if not np.isfinite(weights.data).all():
        return f"{weights} holds infinities or NaN, which OpenVINO multiplies with the padding too"
    if bias is not None and bias.size != weights.shape[4]:
        return f"{bias} is no bias of {weights.shape[4]} filters"
    numbers = (*_strides_3d(options), *_dilations_3d(options))
    return _refuses_window(options.padding, *numbers) or refuses_activation(options.fused_activation_function)


@translates("CONV_3D", refuses=_refuses_conv_3d, inputs=(2, 3), optional=(2,))
def _conv_3d(graph: GraphBuilder, node: Node) -> None:
    options, (data, weights), bias = node.options(Conv3DOptions), node.inputs[:2], node.optional_input(2)
    strides, dilations = _strides_3d(options), _dilations_3d(options)
    begin, end = _padding_of(options.padding, data.shape[1:4], weights.shape[:3], strides, dilations)
    taps = graph.arranged(weights, lambda array: array.transpose(4, 3, 0, 1, 2))
    made = ov.convolution(graph.transposed(graph.value(data), (0, 4, 1, 2, 3)), taps, strides, begin, end, dilations)
    if bias is not None:
        made = ov.add(made, graph.reshaped(graph.value(bias), (1, bias.size, 1, 1, 1)))
    made = activated(made, options.fused_activation_function)
    graph.put(node.outputs[0], graph.transposed(made, (0, 2, 3, 4, 1)))


def _refuses_transposed(weights: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> str:
    """Return why a transposed convolution cannot be cropped by `begin` and `end`; "" if it can."""
    fits = all(
        0 <= before < taps and -stride < behind < taps
        for before, behind, taps, stride in zip(begin, end, weights.shape[1:3], strides)
    )
    return "" if fits else f"of what {weights} makes, {list(begin)} would be cut off before and {list(end)} behind"


def _transposed_convolution(
    graph: GraphBuilder,
    tensors: tuple[Tensor, Tensor, Tensor | None],
    strides: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
) -> Value:
    """Add a transposed convolution with bias to the graph; return its NCHW value.

    Args:
        graph: the graph.
        tensors: image, filter and bias.
        strides: the strides along height and width.
        begin: the rows and columns of the full result to crop at the beginning.
        end: the rows and columns to crop at the end; a negative number adds some.
    """
    data, weights, bias = tensors
    made = ov.convolution_backprop_data(
        graph.planes(data),
        _ordered(graph, weights, (3, 0, 1, 2)),
        list(strides),
        pads_begin=list(begin),
        pads_end=[max(side, 0) for side in end],
        dilations=[1, 1],
        output_padding=[max(-side, 0) for side in end],
    )
    return _with_bias(graph, made, bias, data, weights)


def _surplus(data: Tensor, weights: Tensor, out: Tensor, strides: Sequence[int]) -> list[int]:
    """Return by how many rows and columns a transposed convolution's full result is larger than its output."""
    sizes = zip(data.shape[1:3], weights.shape[1:3], out.shape[1:3], strides)
    return [(size - 1) * stride + taps - wanted for size, taps, wanted, stride in sizes]


def _crops(node: Node) -> tuple[list[int], list[int]]:
    """Return the rows and columns that TRANSPOSE_CONV crops at the beginning, and at the end."""
    options, (_, weights, data), out = node.options(TransposeConvOptions), node.inputs[:3], node.outputs[0]
    strides = (options.stride_h, options.stride_w)
    begin, _ = _padding_of(options.padding, out.shape[1:3], weights.shape[1:3], strides)
    return begin, [whole - before for whole, before in zip(_surplus(data, weights, out, strides), begin)]


def _refuses_transpose_conv(node: Node) -> str:
    options, (_, weights, data), bias = node.options(TransposeConvOptions), node.inputs[:3], node.optional_input(3)
    out = node.outputs[0]
    reason = _refuses_filter(data, weights, bias, weights.shape[0] if weights.shape else 0)
    reason = reason or _refuses_window(options.padding, options.stride_h, options.stride_w)
    reason = reason or refuses_activation(options.fused_activation_function)
    if reason:
        return reason
    if weights.shape[3] != data.shape[3] or out.shape[3] != weights.shape[0]:
        return f"{weights} does not fit {data} and {out}"
    return _refuses_transposed(weights, *_crops(node), (options.stride_h, options.stride_w))


@translates("TRANSPOSE_CONV", newest=5, refuses=_refuses_transpose_conv, inputs=(3, 4), constants=(0,), optional=(3,))
def _transpose_conv(graph: GraphBuilder, node: Node) -> None:
    options, (_, weights, data), bias = node.options(TransposeConvOptions), node.inputs[:3], node.optional_input(3)
    strides = (options.stride_h, options.stride_w)
    made = _transposed_convolution(graph, (data, weights, bias), strides, *_crops(node))
    graph.put_planes(node.outputs[0], activated(made, options.fused_activation_function))


def _custom_strides(node: Node) -> tuple[int, int]:
    """Return the strides along rows and columns in the custom options, int32 after the padding; 0 if they are too short."""
    if len(node.custom_options) < 12:
        return 0, 0
    _, across, down = struct.unpack("<3i", bytes(node.custom_options[:12]))
    return down, across


def _custom_crops(node: Node) -> tuple[list[int], list[int]]:
    """Return the rows and columns to crop at the beginning, and at the end (which gets the odd one)."""
    (data, weights, _), out = node.inputs, node.outputs[0]
    surplus = _surplus(data, weights, out, _custom_strides(node))
    begin = [max(number, 0) // 2 for number in surplus]
    return begin, [number - before for number, before in zip(surplus, begin)]


def _refuses_custom(node: Node) -> str:
    (data, weights, bias), out = node.inputs, node.outputs[0]
    reason = _refuses_filter(data, weights, bias, weights.shape[0] if weights.shape else 0)
    if reason:
        return reason
    if weights.shape[3] != data.shape[3] or out.ndim != 4 or out.shape[3] != weights.shape[0]:
        return f"{weights} does not fit {data} and {out}"
    strides = _custom_strides(node)
    if min(strides) < 1:
        return f"its strides are {list(strides)}"
    return _refuses_transposed(weights, *_custom_crops(node), strides)


@translates("Convolution2DTransposeBias", refuses=_refuses_custom, inputs=(3, 3), custom=True)
def _convolution_2d_transpose_bias(graph: GraphBuilder, node: Node) -> None:
    """Translate MediaPipe's transposed convolution."""
    data, weights, bias = node.inputs
    made = _transposed_convolution(graph, (data, weights, bias), _custom_strides(node), *_custom_crops(node))
    graph.put_planes(node.outputs[0], made)


def _refuses_products(node: Node) -> str:
    options, (data, weights), bias = node.options(FullyConnectedOptions), node.inputs[:2], node.optional_input(2)
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return f"its weights are {options.weights_format!r}"
    if weights.ndim != 2 or data.size % weights.shape[1]:
        return f"{weights} does not fit {data}"
    if bias is not None and bias.size != weights.shape[0]:
        return f"{bias} is no bias of {weights.shape[0]} units"
    return refuses_activation(options.fused_activation_function)


@translates("FULLY_CONNECTED", newest=14, refuses=_refuses_products, inputs=(2, 3), optional=(2,), layer_of_8_bits=True, bias=2)
def _fully_connected(graph: GraphBuilder, node: Node) -> None:
    (data, weights), bias, out = node.inputs[:2], node.optional_input(2), node.outputs[0]
    units, depth = weights.shape
    rows = graph.reshaped(graph.flat(data), (data.size // depth, depth))
    made = ov.matmul(rows, graph.value(weights), False, True)
    if bias is not None:
        if bias.is_constant:
            row = graph.constant(_real_bias(bias, data, weights).reshape(1, units))
        else:
            row = graph.reshaped(graph.value(bias), (1, units))
        made = ov.add(made, row)
    made = activated(made, node.options(FullyConnectedOptions).fused_activation_function)
    graph.put(out, graph.reshaped(made.output(0), out.shape))


@translates("BATCH_MATMUL", newest=4, inputs=(2, 2))
def _batch_matmul(graph: GraphBuilder, node: Node) -> None:
    options, (x, y), out = node.options(BatchMatMulOptions), node.inputs, node.outputs[0]
    made = ov.matmul(graph.value(x), graph.value(y), options.adj_x, options.adj_y)
    graph.put(out, graph.reshaped(made.output(0), out.shape))


def _refuses_pool(node: Node) -> str:
    options = node.options(Pool2DOptions)
    if node.inputs[0].ndim != 4:
        return f"it wants four dimensions, not {node.inputs[0]}"
    numbers = (options.stride_h, options.stride_w, options.filter_height, options.filter_width)
    reason = _refuses_window(options.padding, *numbers) or refuses_activation(options.fused_activation_function)
    return reason or refuses_rescaling(node)


def _pool(name: str, make: Callable[..., Value], **attributes: Any) -> None:
    """Register a pool, by what creates it from image, strides, padding at the beginning and at the end, and window size."""

    @translates(name, refuses=_refuses_pool, **attributes)
    def translate(graph: GraphBuilder, node: Node) -> None:
        options = node.options(Pool2DOptions)
        strides, taps = [options.stride_h, options.stride_w], [options.filter_height, options.filter_width]
        begin, end = _padding_of(options.padding, node.inputs[0].shape[1:3], taps, strides)
        made = make(graph.planes(node.inputs[0]), strides, begin, end, taps)
        graph.put_planes(node.outputs[0], activated(made, options.fused_activation_function))


_pool("AVERAGE_POOL_2D", lambda *window: opset1.avg_pool(*window, True), newest=4, layer_of_8_bits=True)  # padding not counted
_pool("L2_POOL_2D", lambda x, *window: ov.sqrt(opset1.avg_pool(ov.multiply(x, x), *window, True)))
_pool("MAX_POOL_2D", opset1.max_pool, newest=4, layer_of_8_bits=True)
