"""Shared parts of CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from openvino import opset13 as ov

from oplet import Tensor, TensorType
from oplet_openvino_delegate.graph import GraphBuilder, Value


def refuses_filter(data: Tensor, weights: Tensor, bias: Tensor | None, filters: int) -> str:
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


def real_bias(bias: Tensor, data: Tensor, weights: Tensor) -> NDArray[np.float32]:
    """Return a constant bias as float32: an int32 bias is dequantized by input scale * weight scale."""
    values: NDArray[np.float32] = bias.data
    if bias.type is not TensorType.INT32:
        return values
    scales = weights.quantization.scales if weights.quantization is not None else np.ones(1)
    values = (bias.data * (np.float64(data.scale) * scales.astype(np.float64))).astype(np.float32)
    return values


def with_bias(graph: GraphBuilder, value: Value, bias: Tensor | None, data: Tensor, weights: Tensor) -> Value:
    """Add a bias, unless it is None, to an NCHW value along the channel axis (1); return the sum."""
    if bias is None:
        return value
    return ov.add(value, graph.constant(real_bias(bias, data, weights).reshape((1, -1, 1, 1))))


def ordered(graph: GraphBuilder, weights: Tensor, order: Sequence[int]) -> Value:
    """Return a filter with its dimensions permuted by `order`; a constant is permuted at compile time."""
    if weights.is_constant:
        return graph.arranged(weights, lambda array: array.transpose(order))
    return graph.transposed(graph.value(weights), order)


def refuses_transposed(weights: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> str:
    """Return why a transposed convolution cannot be cropped by `begin` and `end`; "" if it can."""
    fits = all(
        0 <= before < taps and -stride < behind < taps
        for before, behind, taps, stride in zip(begin, end, weights.shape[1:3], strides)
    )
    return "" if fits else f"of what {weights} makes, {list(begin)} would be cut off before and {list(end)} behind"


def transposed_convolution(
    graph: GraphBuilder,
    tensors: tuple[Tensor, Tensor, Tensor | None],
    strides: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
) -> Value:
    """Add a transposed convolution with bias to the graph; return its NCHW value.

    Args:
        tensors: image, filter and bias.
        strides: the strides along height and width.
        begin: the rows and columns of the full result to crop at the beginning.
        end: the rows and columns to crop at the end; a negative number adds some.
    """
    data, weights, bias = tensors
    made = ov.convolution_backprop_data(
        graph.planes(data),
        ordered(graph, weights, (3, 0, 1, 2)),
        list(strides),
        pads_begin=list(begin),
        pads_end=[max(side, 0) for side in end],
        dilations=[1, 1],
        output_padding=[max(-side, 0) for side in end],
    )
    return with_bias(graph, made, bias, data, weights)
