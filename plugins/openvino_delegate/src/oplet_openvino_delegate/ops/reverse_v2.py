"""REVERSE_V2: reversed along some dimensions."""

from __future__ import annotations

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import axes_of, cut, integers, refuses_rescaling
from oplet_openvino_delegate.translators import MOVED, Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the REVERSE_V2 node to other kernels; "" if it translates it."""
    data, axes = node.inputs[0], integers(node.inputs[1])
    return refuses_rescaling(node) if axes_of(axes, data.ndim) is not None else f"the axes {axes} are not all in {data}"


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the REVERSE_V2 node to the graph."""
    data = node.inputs[0]
    axes = axes_of(integers(node.inputs[1]), data.ndim) or []
    whole = [slice(size - 1, None, -1) if axis in axes else slice(0, size, 1) for axis, size in enumerate(data.shape)]
    cut(graph, data, node.outputs[0], whole)


TRANSLATOR = Translator(3, translate, refuses, inputs=(2, 2), types=MOVED, constants=(1,), layer_of_8_bits=True)
