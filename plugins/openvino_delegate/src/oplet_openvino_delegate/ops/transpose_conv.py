"""TRANSPOSE_CONV on float32; the first input is the output's shape."""

from __future__ import annotations

from oplet import Node
from oplet.schema.options import TransposeConvOptions
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.convolutions import refuses_filter, refuses_transposed, transposed_convolution
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator
from oplet_openvino_delegate.windows import padding_of, refuses_window


def refuses(node: Node) -> str:
    """Return why the delegate leaves the TRANSPOSE_CONV node to other kernels; "" if it translates it."""
    options, (_, weights, data), bias = node.options(TransposeConvOptions), node.inputs[:3], node.optional_input(3)
    out = node.outputs[0]
    reason = refuses_filter(data, weights, bias, weights.shape[0] if weights.shape else 0)
    reason = reason or refuses_window(options.padding, options.stride_h, options.stride_w)
    reason = reason or refuses_activation(options.fused_activation_function)
    if reason:
        return reason
    if weights.shape[3] != data.shape[3] or out.shape[3] != weights.shape[0]:
        return f"{weights} does not fit {data} and {out}"
    return refuses_transposed(weights, *_padding(node), (options.stride_h, options.stride_w))


def _padding(node: Node) -> tuple[list[int], list[int]]:
    """Return the rows and columns to crop at the beginning, and at the end."""
    options, (_, weights, data), out = node.options(TransposeConvOptions), node.inputs[:3], node.outputs[0]
    strides = (options.stride_h, options.stride_w)
    begin, _ = padding_of(options.padding, out.shape[1:3], weights.shape[1:3], strides)
    sizes = zip(data.shape[1:3], weights.shape[1:3], out.shape[1:3], strides, begin)
    return begin, [(size - 1) * stride + taps - before - wanted for size, taps, wanted, stride, before in sizes]


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the TRANSPOSE_CONV node to the graph."""
    options, (_, weights, data), bias = node.options(TransposeConvOptions), node.inputs[:3], node.optional_input(3)
    strides = (options.stride_h, options.stride_w)
    made = transposed_convolution(graph, (data, weights, bias), strides, *_padding(node))
    graph.put_planes(node.outputs[0], activated(made, options.fused_activation_function))


TRANSLATOR = Translator(5, translate, refuses, inputs=(3, 4), constants=(0,), optional=(3,))
