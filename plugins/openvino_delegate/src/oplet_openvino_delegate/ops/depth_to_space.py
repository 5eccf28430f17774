"""DEPTH_TO_SPACE: channel blocks become spatial blocks."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import DepthToSpaceOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the DEPTH_TO_SPACE node to other kernels; "" if it translates it."""
    if node.inputs[0].ndim != 4:
        return f"it wants four dimensions, not {node.inputs[0]}"
    size = node.options(DepthToSpaceOptions).block_size
    return "" if size >= 1 else f"its blocks are of size {size}"


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the DEPTH_TO_SPACE node to the graph."""
    made = ov.depth_to_space(graph.planes(node.inputs[0]), "blocks_first", node.options(DepthToSpaceOptions).block_size)
    graph.put_planes(node.outputs[0], made)


TRANSLATOR = Translator(1, translate, refuses, layer_of_8_bits=True)
