"""DEQUANTIZE of int8 and uint8 to float32: scale * (value - zero point)."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node, TensorType
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Why the node is not claimed; "" if it is."""
    data, out = node.inputs[0], node.outputs[0]
    if data.type is TensorType.FLOAT32 or out.type is not TensorType.FLOAT32:
        return f"it is to make {out} of {data}"
    if data.quantization is None or data.quantization.per_channel or not 0 < data.scale < np.inf:
        return f"{data} has not one scale"
    return ""


def translate(graph: GraphBuilder, node: Node) -> None:
    """The operator in OpenVINO."""
    data = node.inputs[0]
    planes = graph.in_planes([data])
    whole = ov.convert(graph.planes(data) if planes else graph.value(data), "i32")
    # In integers: a difference of floats would be fused with the product, and rounded otherwise.
    centred = ov.subtract(whole, graph.constant(np.int32(data.zero_point)))
    made = ov.multiply(ov.convert(centred, "f32"), graph.constant(np.float32(data.scale)))
    graph.put_as(planes, node.outputs[0], made)


TRANSLATOR = Translator(6, translate, refuses, types=(TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8))
