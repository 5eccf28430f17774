"""DEPTHWISE_CONV_2D on float32: a convolution with one group per channel."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import DepthwiseConv2DOptions
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.convolutions import refuses_filter, with_bias
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator
from oplet_openvino_delegate.windows import padding_of, refuses_window


def refuses(node: Node) -> str:
    """Return why the delegate leaves the DEPTHWISE_CONV_2D node to other kernels; "" if it translates it."""
    options, (data, weights), bias = node.options(DepthwiseConv2DOptions), node.inputs[:2], node.optional_input(2)
    reason = refuses_filter(data, weights, bias, weights.shape[-1] if weights.shape else 0)
    if reason:
        return reason
    if weights.shape[0] != 1 or weights.shape[3] % data.shape[3]:
        return f"{weights} does not fit the channels of {data}"
    numbers = (options.stride_h, options.stride_w, options.dilation_h_factor, options.dilation_w_factor)
    return refuses_window(options.padding, *numbers) or refuses_activation(options.fused_activation_function)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the DEPTHWISE_CONV_2D node to the graph."""
    options, (data, weights), out = node.options(DepthwiseConv2DOptions), node.inputs[:2], node.outputs[0]
    strides = [options.stride_h, options.stride_w]
    dilations = [options.dilation_h_factor, options.dilation_w_factor]
    begin, end = padding_of(options.padding, data.shape[1:3], weights.shape[1:3], strides, dilations)
    _, height, width, filters = weights.shape
    channels = data.shape[3]
    grouped = (channels, filters // channels, 1, height, width)
    if weights.is_constant:
        taps = graph.arranged(weights, lambda array: array[0].transpose(2, 0, 1).reshape(grouped))
    else:
        taps = graph.reshaped(graph.transposed(graph.value(weights), (3, 0, 1, 2)), grouped)
    made = ov.group_convolution(graph.planes(data), taps, strides, begin, end, dilations)
    total = with_bias(graph, made, node.optional_input(2), data, weights)
    graph.put_planes(out, activated(total, options.fused_activation_function))


TRANSLATOR = Translator(7, translate, refuses, inputs=(2, 3), optional=(2,), layer_of_8_bits=True, bias=2)
