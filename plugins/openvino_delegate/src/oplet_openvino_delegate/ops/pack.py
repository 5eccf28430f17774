"""PACK: stack tensors of one shape along a new dimension."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import PackOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import axes_of, refuses_rescaling
from oplet_openvino_delegate.translators import MOVED, Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the PACK node to other kernels; "" if it translates it."""
    axis = node.options(PackOptions).axis
    if not axes_of([axis], node.outputs[0].ndim):
        return f"its axis {axis} is not in {node.outputs[0]}"
    return refuses_rescaling(node, node.inputs)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the PACK node to the graph."""
    out = node.outputs[0]
    axis = node.options(PackOptions).axis % out.ndim
    shape = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    graph.put(out, ov.concat([graph.reshaped(graph.value(tensor), shape) for tensor in node.inputs], axis))


TRANSLATOR = Translator(2, translate, refuses, inputs=(1, 4096), types=MOVED, layer_of_8_bits=True)
