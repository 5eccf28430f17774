"""TRANSPOSE_CONV on float32; the first input is the output's shape."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import TransposeConvOptions
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.convolutions import ordered, refuses_filter, with_bias
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator
from oplet_openvino_delegate.windows import padding_of, refuses_window


def refuses(node: Node) -> str:
    """Why the node is not claimed; "" if it is."""
    options, (_, weights, data), bias = node.options(TransposeConvOptions), node.inputs[:3], node.optional_input(3)
    out = node.outputs[0]
    reason = refuses_filter(data, weights, bias, weights.shape[0] if weights.shape else 0)
    reason = reason or refuses_window(options.padding, options.stride_h, options.stride_w)
    reason = reason or refuses_activation(options.fused_activation_function)
    if reason:
        return reason
    if weights.shape[3] != data.shape[3] or out.shape[3] != weights.shape[0]:
        return f"{weights} does not fit {data} and {out}"
    begin, end = _padding(node)
    if (
        min(begin) < 0
        or min(end) < -min(options.stride_h, options.stride_w) + 1
        or any(side >= taps for side, taps in zip((*begin, *end), (*weights.shape[1:3],) * 2))
    ):
        return f"it pads {begin} before and {end} behind"
    return ""


def _padding(node: Node) -> tuple[list[int], list[int]]:
    """Rows and columns of the full result that are cut off before, and behind: below 0 if there are too few."""
    options, (_, weights, data), out = node.options(TransposeConvOptions), node.inputs[:3], node.outputs[0]
    strides = (options.stride_h, options.stride_w)
    begin, _ = padding_of(options.padding, out.shape[1:3], weights.shape[1:3], strides)
    sizes = zip(data.shape[1:3], weights.shape[1:3], out.shape[1:3], strides, begin)
    return begin, [(size - 1) * stride + taps - before - wanted for size, taps, wanted, stride, before in sizes]


def translate(graph: GraphBuilder, node: Node) -> None:
    """The operator in OpenVINO."""
    options, (_, weights, data), out = node.options(TransposeConvOptions), node.inputs[:3], node.outputs[0]
    begin, end = _padding(node)
    made = ov.convolution_backprop_data(
        graph.planes(data),
        ordered(graph, weights, (3, 0, 1, 2)),
        [options.stride_h, options.stride_w],
        pads_begin=begin,
        pads_end=[max(side, 0) for side in end],
        dilations=[1, 1],
        output_padding=[max(-side, 0) for side in end],
    )
    total = with_bias(graph, made, node.optional_input(3))
    graph.put_planes(out, activated(total, options.fused_activation_function))


TRANSLATOR = Translator(5, translate, refuses, inputs=(3, 4), constants=(0,), optional=(3,))
