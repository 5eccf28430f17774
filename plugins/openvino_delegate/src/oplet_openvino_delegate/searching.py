"""Translators of ARG_MAX and ARG_MIN, from .tflite models to OpenVINO's graphs."""

from __future__ import annotations

import numpy as np
from openvino import opset11 as ov

from oplet import Node, TensorType
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import axes_of, integers
from oplet_openvino_delegate.translators import Translator


def _refuses(node: Node) -> str:
    data, axis = node.inputs
    if data.type is not TensorType.FLOAT32 or node.outputs[0].type is not TensorType.INT32:
        return f"it is to find {node.outputs[0]} in {data}"
    return "" if axis.size == 1 and axes_of(integers(axis), data.ndim) else f"the axis {axis} is not in {data}"


def searching(mode: str) -> Translator:
    """Build the translator of ARG_MAX or ARG_MIN (`mode` "max" or "min")."""

    def translate(graph: GraphBuilder, node: Node) -> None:
        data, out = node.inputs[0], node.outputs[0]
        axis = integers(node.inputs[1])[0] % data.ndim
        found = ov.topk(graph.value(data), graph.constant(np.int64(1)), axis, mode, "value", "i32", True)
        graph.put(out, graph.reshaped(found.output(1), out.shape))

    types = (TensorType.FLOAT32, TensorType.INT32)
    return Translator(1, translate, _refuses, inputs=(2, 2), types=types, constants=(1,))
