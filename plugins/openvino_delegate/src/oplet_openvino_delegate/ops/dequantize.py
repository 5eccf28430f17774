"""DEQUANTIZE of int8 and uint8 to float32: scale * (value - zero point)."""

from __future__ import annotations

from oplet import Node, TensorType
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the DEQUANTIZE node to other kernels; "" if it translates it."""
    data, out = node.inputs[0], node.outputs[0]
    if data.type is TensorType.FLOAT32 or out.type is not TensorType.FLOAT32:
        return f"it is to make {out} of {data}"
    return ""


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the DEQUANTIZE node to the graph."""
    data = node.inputs[0]
    planes = graph.in_planes([data])
    graph.put_as(planes, node.outputs[0], graph.planes(data) if planes else graph.value(data))


TRANSLATOR = Translator(6, translate, refuses, types=(TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8))
