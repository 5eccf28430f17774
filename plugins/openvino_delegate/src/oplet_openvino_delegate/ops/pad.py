"""PAD with zeros."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.padding import edges, refuses_edges
from oplet_openvino_delegate.translators import Translator


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the PAD node to the graph."""
    planes, value, begin, end = edges(graph, node)
    graph.put_as(planes, node.outputs[0], ov.pad(value, begin, end, "constant", graph.constant(np.float32(0))))


TRANSLATOR = Translator(2, translate, refuses_edges, inputs=(2, 2), constants=(1,), layer_of_8_bits=True)
