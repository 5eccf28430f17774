"""CUMSUM: running totals along one dimension."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import CumsumOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import axes_of, integers
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the CUMSUM node to other kernels; "" if it translates it."""
    data, axis = node.inputs
    return "" if axis.size == 1 and axes_of(integers(axis), data.ndim) else f"the axis {axis} is not in {data}"


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the CUMSUM node to the graph."""
    options, data = node.options(CumsumOptions), node.inputs[0]
    axis = graph.constant(np.int64(integers(node.inputs[1])[0] % data.ndim))
    graph.put(node.outputs[0], ov.cum_sum(graph.value(data), axis, options.exclusive, options.reverse))


TRANSLATOR = Translator(1, translate, refuses, inputs=(2, 2), constants=(1,))
