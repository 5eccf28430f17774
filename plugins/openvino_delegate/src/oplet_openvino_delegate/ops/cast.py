"""CAST among float32, int32 and bool, where no value overflows."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node, TensorType
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator

_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL)


def refuses(node: Node) -> str:
    """Return why the delegate leaves the CAST node to other kernels; "" if it translates it."""
    data, out = node.inputs[0], node.outputs[0]
    if data.type is TensorType.FLOAT32 and out.type is TensorType.INT32:
        return "OpenVINO cuts floats that do not fit INT32 otherwise"
    return ""


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the CAST node to the graph."""
    data, out = node.inputs[0], node.outputs[0]
    value = graph.value(data)
    if out.type is TensorType.BOOL:
        graph.put(out, value if data.type is out.type else ov.not_equal(value, graph.constant(np.zeros((), data.dtype))))
        return
    graph.put(out, ov.convert(value, {TensorType.FLOAT32: "f32", TensorType.INT32: "i32"}[out.type]))


TRANSLATOR = Translator(6, translate, refuses, types=_TYPES)
