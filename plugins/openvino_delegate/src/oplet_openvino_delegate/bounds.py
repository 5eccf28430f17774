"""Clamps: RELU, RELU6, RELU_0_TO_1, RELU_N1_TO_1."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def bounded(low: float, high: float | None) -> Translator:
    """Build the translator of an operator that clamps to [low, high]; None for no upper bound."""

    def translate(graph: GraphBuilder, node: Node) -> None:
        data, out = node.inputs[0], node.outputs[0]
        if data in graph.parameters:  # what comes from outside may be NaN, which OpenVINO's RELU would make 0 of
            value = ov.maximum(graph.constant(np.float32(low)), graph.value(data))
            graph.put(out, value if high is None else ov.minimum(graph.constant(np.float32(high)), value))
            return
        planes = graph.in_planes([data])
        value = graph.planes(data) if planes else graph.value(data)
        graph.put_as(planes, out, ov.relu(value) if high is None else ov.clamp(value, low, high))

    return Translator(2, translate, layer_of_8_bits=low == 0)
