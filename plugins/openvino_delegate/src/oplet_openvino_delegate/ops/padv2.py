"""PADV2: PAD with a given value."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.padding import edges, refuses_edges
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the PADV2 node to other kernels; "" if it translates it."""
    filler = node.inputs[2]
    if filler.type is not node.inputs[0].type or filler.size != 1:
        return f"{filler} is no value to pad {node.inputs[0]} with"
    return refuses_edges(node)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the PADV2 node to the graph."""
    planes, value, begin, end = edges(graph, node)
    filler = graph.constant(node.inputs[2].data.reshape(()), np.float32)
    graph.put_as(planes, node.outputs[0], ov.pad(value, begin, end, "constant", filler))


TRANSLATOR = Translator(2, translate, refuses, inputs=(3, 3), constants=(1, 2))
