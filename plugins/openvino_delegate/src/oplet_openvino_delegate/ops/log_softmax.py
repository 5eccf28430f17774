"""LOG_SOFTMAX along the last dimension."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the LOG_SOFTMAX node to other kernels; "" if it translates it."""
    return "" if node.inputs[0].ndim else "there is no last dimension in a scalar"


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the LOG_SOFTMAX node to the graph."""
    data = node.inputs[0]
    graph.put(node.outputs[0], ov.log_softmax(graph.value(data), data.ndim - 1))


TRANSLATOR = Translator(1, translate, refuses)
