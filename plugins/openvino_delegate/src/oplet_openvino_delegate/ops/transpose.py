"""TRANSPOSE: permuted dimensions."""

from __future__ import annotations

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import axes_of, integers, refuses_rescaling
from oplet_openvino_delegate.translators import MOVED, Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the TRANSPOSE node to other kernels; "" if it translates it."""
    data, order = node.inputs[0], integers(node.inputs[1])
    axes = axes_of(order, data.ndim)
    if axes is None or sorted(axes) != list(range(data.ndim)):
        return f"{order} is no order of the dimensions of {data}"
    return refuses_rescaling(node)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the TRANSPOSE node to the graph."""
    data = node.inputs[0]
    order = list(axes_of(integers(node.inputs[1]), data.ndim) or ())
    if order == [0, 3, 1, 2] and graph.in_planes([data]):
        graph.put(node.outputs[0], graph.planes(data))  # it is so already
        return
    graph.put(node.outputs[0], graph.transposed(graph.value(data), order))


TRANSLATOR = Translator(6, translate, refuses, inputs=(2, 2), types=MOVED, constants=(1,), layer_of_8_bits=True)
