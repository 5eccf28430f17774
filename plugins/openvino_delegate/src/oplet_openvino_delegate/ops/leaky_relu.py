"""LEAKY_RELU: x, or alpha * x below 0."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import LeakyReluOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the LEAKY_RELU node to the graph."""
    data = node.inputs[0]
    planes = graph.in_planes([data])
    alpha = graph.constant(np.array([node.options(LeakyReluOptions).alpha], np.float32))
    graph.put_as(planes, node.outputs[0], ov.prelu(graph.planes(data) if planes else graph.value(data), alpha))


TRANSLATOR = Translator(2, translate, layer_of_8_bits=True)
