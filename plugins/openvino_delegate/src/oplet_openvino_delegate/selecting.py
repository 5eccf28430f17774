"""Translators of SELECT and SELECT_V2, from .tflite models to OpenVINO's graphs."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node, TensorType
from oplet_openvino_delegate.elementwise import operands
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator

_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL)


def selection(*, by_row: bool = False) -> Translator:
    """Build the translator of SELECT or SELECT_V2: the second input where the first is true, else the third.

    Args:
        by_row: the first input may be a vector that chooses whole rows.
    """

    def refuses(node: Node) -> str:
        condition, one, other = node.inputs
        if condition.type is not TensorType.BOOL or one.type is not other.type or one.type is not node.outputs[0].type:
            return f"it does not choose by {condition} between {one} and {other}"
        return ""

    def translate(graph: GraphBuilder, node: Node) -> None:
        condition, one, other = node.inputs
        out = node.outputs[0]
        if by_row and condition.ndim == 1 and out.ndim > 1:
            chosen = graph.reshaped(graph.value(condition), (condition.size,) + (1,) * (out.ndim - 1))
            graph.put(out, ov.select(chosen, graph.value(one), graph.value(other)))
            return
        planes, values = operands(graph, (condition, one, other), out)
        graph.put_as(planes, out, ov.select(*values))

    return Translator(1, translate, refuses, inputs=(3, 3), types=_TYPES)
