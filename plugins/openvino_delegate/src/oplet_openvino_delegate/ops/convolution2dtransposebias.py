"""MediaPipe's Convolution2DTransposeBias on float32; its custom options hold padding and strides as int32."""

from __future__ import annotations

import struct

from oplet import Node
from oplet_openvino_delegate.convolutions import refuses_filter, refuses_transposed, transposed_convolution
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def _strides(node: Node) -> tuple[int, int]:
    """Return the strides along rows and columns; 0 if the options are too short."""
    if len(node.custom_options) < 12:
        return 0, 0
    _, across, down = struct.unpack("<3i", bytes(node.custom_options[:12]))
    return down, across


def refuses(node: Node) -> str:
    """Return why the delegate leaves the Convolution2DTransposeBias node to other kernels; "" if it translates it."""
    (data, weights, bias), out = node.inputs, node.outputs[0]
    reason = refuses_filter(data, weights, bias, weights.shape[0] if weights.shape else 0)
    if reason:
        return reason
    if weights.shape[3] != data.shape[3] or out.ndim != 4 or out.shape[3] != weights.shape[0]:
        return f"{weights} does not fit {data} and {out}"
    strides = _strides(node)
    if min(strides) < 1:
        return f"its strides are {list(strides)}"
    return refuses_transposed(weights, *_padding(node), strides)


def _padding(node: Node) -> tuple[list[int], list[int]]:
    """Return the rows and columns to crop at the beginning, and at the end (which gets the odd one)."""
    (data, weights, _), out = node.inputs, node.outputs[0]
    sizes = zip(data.shape[1:3], weights.shape[1:3], out.shape[1:3], _strides(node))
    surplus = [(size - 1) * stride + taps - wanted for size, taps, wanted, stride in sizes]
    begin = [max(number, 0) // 2 for number in surplus]
    return begin, [number - before for number, before in zip(surplus, begin)]


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the Convolution2DTransposeBias node to the graph."""
    data, weights, bias = node.inputs
    graph.put_planes(node.outputs[0], transposed_convolution(graph, (data, weights, bias), _strides(node), *_padding(node)))


TRANSLATOR = Translator(1, translate, refuses, inputs=(3, 3), custom=True)
