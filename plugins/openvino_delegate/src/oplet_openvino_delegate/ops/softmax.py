"""SOFTMAX along the last dimension."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import SoftmaxOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the SOFTMAX node to other kernels; "" if it translates it."""
    return "" if node.inputs[0].ndim else "there is no last dimension in a scalar"


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the SOFTMAX node to the graph."""
    data, beta = node.inputs[0], node.options(SoftmaxOptions).beta
    planes = graph.in_planes([data])
    value = graph.planes(data) if planes else graph.value(data)
    if beta != 1:
        value = ov.multiply(value, graph.constant(np.float32(beta)))
    graph.put_as(planes, node.outputs[0], ov.softmax(value, 1 if planes else data.ndim - 1))


TRANSLATOR = Translator(3, translate, refuses, layer_of_8_bits=True)
