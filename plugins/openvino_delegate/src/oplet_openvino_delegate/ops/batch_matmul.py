"""BATCH_MATMUL of floats."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import BatchMatMulOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the BATCH_MATMUL node to the graph."""
    options, (x, y), out = node.options(BatchMatMulOptions), node.inputs, node.outputs[0]
    made = ov.matmul(graph.value(x), graph.value(y), options.adj_x, options.adj_y)
    graph.put(out, graph.reshaped(made.output(0), out.shape))


TRANSLATOR = Translator(4, translate, inputs=(2, 2))
