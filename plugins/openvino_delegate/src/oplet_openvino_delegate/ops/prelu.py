"""PRELU: x, or alpha * x below 0, with broadcast alpha."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.elementwise import operands
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the PRELU node to the graph."""
    data, alpha = node.inputs
    out = node.outputs[0]
    planes, (value, slope) = operands(graph, (data, alpha), out)
    if planes and alpha.ndim and alpha.size == alpha.shape[-1] == data.shape[-1]:  # one for each channel: OpenVINO's own operator
        graph.put_planes(out, ov.prelu(value, graph.reshaped(slope, (alpha.size,))))
        return
    zero = graph.constant(np.float32(0))
    graph.put_as(planes, out, ov.add(ov.maximum(value, zero), ov.multiply(ov.minimum(value, zero), slope)))


TRANSLATOR = Translator(1, translate, inputs=(2, 2), layer_of_8_bits=True)
