"""LOCAL_RESPONSE_NORMALIZATION across channels."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import LocalResponseNormalizationOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Why the node is not claimed; "" if it is."""
    radius = node.options(LocalResponseNormalizationOptions).radius
    if node.inputs[0].ndim != 4:
        return f"it wants four dimensions, not {node.inputs[0]}"
    return "" if 0 <= radius < 2**15 else f"its radius is {radius}"


def translate(graph: GraphBuilder, node: Node) -> None:
    """The operator in OpenVINO, which divides alpha by the number of neighbours."""
    options = node.options(LocalResponseNormalizationOptions)
    size = 2 * options.radius + 1
    axis = graph.constant(np.array([1], np.int64))
    made = ov.lrn(graph.planes(node.inputs[0]), axis, options.alpha * size, options.beta, options.bias, size)
    graph.put_planes(node.outputs[0], made)


TRANSLATOR = Translator(1, translate, refuses)
