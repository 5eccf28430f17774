"""L2_NORMALIZATION: values divided by their L2 norm along the last dimension."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import L2NormOptions
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator

#: Below this a root counts as this.
_SMALLEST = 1e-6


def refuses(node: Node) -> str:
    """Return why the delegate leaves the L2_NORMALIZATION node to other kernels; "" if it translates it."""
    if not node.inputs[0].ndim:
        return "there is no last dimension in a scalar"
    return refuses_activation(node.options(L2NormOptions).fused_activation_function)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the L2_NORMALIZATION node to the graph."""
    data = node.inputs[0]
    planes = graph.in_planes([data])
    value = graph.planes(data) if planes else graph.value(data)
    axis = graph.constant(np.array([1 if planes else data.ndim - 1], np.int64))
    root = ov.sqrt(ov.reduce_sum(ov.multiply(value, value), axis, True))
    made = ov.divide(value, ov.maximum(root, graph.constant(np.float32(_SMALLEST))))
    graph.put_as(planes, node.outputs[0], activated(made, node.options(L2NormOptions).fused_activation_function))


TRANSLATOR = Translator(2, translate, refuses)
