"""CONV_2D version 1 on float32: a sum over the filter's taps, each one a matrix product over the channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Node
from oplet.kernels.activations import float_activation_range
from oplet.kernels.windows import padding_around, windows_in
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Conv2DOptions

_ACTIVATIONS = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU_N1_TO_1,
    ActivationFunctionType.RELU6,
)


def refuses(node: Node) -> str:
    """Return why the delegate cannot run a CONV_2D node; "" if it can."""
    options = node.options(Conv2DOptions)
    if len(node.inputs) != 3 or any(tensor is None for tensor in node.inputs):
        return "it wants an input, a filter and a bias"
    data, weights, bias = node.inputs
    if data.ndim != 4 or weights.ndim != 4 or not weights.is_constant or not bias.is_constant:
        return "it wants a 4-D input, and a constant 4-D filter and bias"
    if weights.type is not data.type or bias.type is not data.type:
        return f"its filter is {weights.type.name} and its bias {bias.type.name}, not FLOAT32"
    if weights.shape[3] != data.shape[3] or bias.shape != weights.shape[:1]:
        return f"its filter {list(weights.shape)} or bias {list(bias.shape)} does not fit the input {list(data.shape)}"
    if options.stride_h < 1 or options.stride_w < 1:
        return f"its strides are {options.stride_h} and {options.stride_w}"
    if options.dilation_h_factor != 1 or options.dilation_w_factor != 1:
        return f"it does not dilate, here by {options.dilation_h_factor} and {options.dilation_w_factor}"
    if options.padding not in (Padding.SAME, Padding.VALID):
        return f"it has no padding {options.padding!r}"
    if options.fused_activation_function not in _ACTIVATIONS:
        return f"it has no activation {options.fused_activation_function!r}"
    return "" if min(output_shape(node)) > 0 else f"nothing comes out: the shape would be {list(output_shape(node))}"


def output_shape(node: Node) -> tuple[int, ...]:
    """Return the output's shape: batch, rows, columns, filters."""
    options = node.options(Conv2DOptions)
    data, weights = node.inputs[0].shape, node.inputs[1].shape
    rows, columns = (
        windows_in(size, taps, stride, options.padding)
        for size, taps, stride in zip(data[1:3], weights[1:3], (options.stride_h, options.stride_w))
    )
    return data[0], rows, columns, weights[0]


def bind(node: Node, data: NDArray[Any], out: NDArray[Any]) -> Callable[[], None]:
    """Return a function that computes `out` from the values that `data` has at the call."""
    options = node.options(Conv2DOptions)
    weights, bias = node.inputs[1].data, node.inputs[2].data
    stride_h, stride_w = options.stride_h, options.stride_w
    _, rows, columns, _ = out.shape
    _, height, width, _ = weights.shape
    vertical = padding_around(data.shape[1], height, stride_h, options.padding)
    horizontal = padding_around(data.shape[2], width, stride_w, options.padding)
    padding, is_padded = ((0, 0), vertical, horizontal, (0, 0)), any(vertical + horizontal)
    low, high = float_activation_range(options.fused_activation_function)

    def run() -> None:
        padded = np.pad(data, padding) if is_padded else data
        total = np.zeros_like(out)
        for y in range(height):
            for x in range(width):
                taps = padded[:, y : y + (rows - 1) * stride_h + 1 : stride_h, x : x + (columns - 1) * stride_w + 1 : stride_w]
                total += taps @ weights[:, y, x].T
        total += bias
        np.clip(total, low, high, out=out)

    return run
