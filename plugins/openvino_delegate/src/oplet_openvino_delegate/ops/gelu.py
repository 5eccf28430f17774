"""GELU: x times the standard normal CDF, exact or by tanh."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import GeluOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the GELU node to the graph."""
    data = node.inputs[0]
    planes = graph.in_planes([data])
    mode = "tanh" if node.options(GeluOptions).approximate else "erf"
    graph.put_as(planes, node.outputs[0], ov.gelu(graph.planes(data) if planes else graph.value(data), mode))


TRANSLATOR = Translator(2, translate, layer_of_8_bits=True)
