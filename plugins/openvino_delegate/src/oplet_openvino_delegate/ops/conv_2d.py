"""CONV_2D on float32; a filter with fewer channels than the image is a grouped convolution."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import Conv2DOptions
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.convolutions import ordered, refuses_filter, with_bias
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator
from oplet_openvino_delegate.windows import padding_of, refuses_window


def refuses(node: Node) -> str:
    """Return why the delegate leaves the CONV_2D node to other kernels; "" if it translates it."""
    options, (data, weights), bias = node.options(Conv2DOptions), node.inputs[:2], node.optional_input(2)
    reason = refuses_filter(data, weights, bias, weights.shape[0] if weights.shape else 0)
    if reason:
        return reason
    groups = data.shape[3] // weights.shape[3]
    if groups * weights.shape[3] != data.shape[3] or weights.shape[0] % groups:
        return f"{weights} does not fit the channels of {data}"
    if groups > 1 and not weights.is_constant:
        return f"{weights} is grouped, and not constant"
    numbers = (options.stride_h, options.stride_w, options.dilation_h_factor, options.dilation_w_factor)
    return refuses_window(options.padding, *numbers) or refuses_activation(options.fused_activation_function)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the CONV_2D node to the graph."""
    options, (data, weights), out = node.options(Conv2DOptions), node.inputs[:2], node.outputs[0]
    strides = [options.stride_h, options.stride_w]
    dilations = [options.dilation_h_factor, options.dilation_w_factor]
    begin, end = padding_of(options.padding, data.shape[1:3], weights.shape[1:3], strides, dilations)
    filters, height, width, channels = weights.shape
    groups = data.shape[3] // channels
    if groups == 1:
        made = ov.convolution(graph.planes(data), ordered(graph, weights, (0, 3, 1, 2)), strides, begin, end, dilations)
    else:
        grouped = (groups, filters // groups, channels, height, width)
        taps = graph.arranged(weights, lambda array: array.transpose(0, 3, 1, 2).reshape(grouped))
        made = ov.group_convolution(graph.planes(data), taps, strides, begin, end, dilations)
    total = with_bias(graph, made, node.optional_input(2), data, weights)
    graph.put_planes(out, activated(total, options.fused_activation_function))


TRANSLATOR = Translator(8, translate, refuses, inputs=(2, 3), optional=(2,), layer_of_8_bits=True, bias=2)
