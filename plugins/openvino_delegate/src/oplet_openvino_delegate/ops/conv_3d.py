"""CONV_3D on float32."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import Conv3DOptions
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator
from oplet_openvino_delegate.windows import padding_of, refuses_window


def _strides(options: Conv3DOptions) -> list[int]:
    return [options.stride_d, options.stride_h, options.stride_w]


def _dilations(options: Conv3DOptions) -> list[int]:
    return [options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor]


def refuses(node: Node) -> str:
    """Return why the delegate leaves the CONV_3D node to other kernels; "" if it translates it."""
    options, (data, weights), bias = node.options(Conv3DOptions), node.inputs[:2], node.optional_input(2)
    if data.ndim != 5 or weights.ndim != 5 or weights.shape[3] != data.shape[4] or not weights.is_constant:
        return f"it wants five dimensions and a constant filter of their channels, not {data} and {weights}"
    if not np.isfinite(weights.data).all():
        return f"{weights} holds infinities or NaN, which OpenVINO multiplies with the padding too"
    if bias is not None and bias.size != weights.shape[4]:
        return f"{bias} is no bias of {weights.shape[4]} filters"
    numbers = (*_strides(options), *_dilations(options))
    return refuses_window(options.padding, *numbers) or refuses_activation(options.fused_activation_function)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the CONV_3D node to the graph."""
    options, (data, weights), bias = node.options(Conv3DOptions), node.inputs[:2], node.optional_input(2)
    strides, dilations = _strides(options), _dilations(options)
    begin, end = padding_of(options.padding, data.shape[1:4], weights.shape[:3], strides, dilations)
    taps = graph.arranged(weights, lambda array: array.transpose(4, 3, 0, 1, 2))
    made = ov.convolution(graph.transposed(graph.value(data), (0, 4, 1, 2, 3)), taps, strides, begin, end, dilations)
    if bias is not None:
        made = ov.add(made, graph.reshaped(graph.value(bias), (1, bias.size, 1, 1, 1)))
    made = activated(made, options.fused_activation_function)
    graph.put(node.outputs[0], graph.transposed(made, (0, 2, 3, 4, 1)))


TRANSLATOR = Translator(1, translate, refuses, inputs=(2, 3), optional=(2,))
