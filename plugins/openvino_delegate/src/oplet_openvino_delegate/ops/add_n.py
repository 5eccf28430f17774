"""ADD_N: the sum of tensors of one shape."""

from __future__ import annotations

from functools import reduce

from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.elementwise import operands
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the ADD_N node to the graph."""
    planes, values = operands(graph, node.inputs, node.outputs[0])
    graph.put_as(planes, node.outputs[0], reduce(ov.add, values))


TRANSLATOR = Translator(1, translate, inputs=(2, 1024))
