"""CONCATENATION along one dimension."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import ConcatenationOptions
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.graph import IN_PLANES, GraphBuilder
from oplet_openvino_delegate.moving import axes_of, refuses_rescaling
from oplet_openvino_delegate.translators import FLOAT, MOVED, Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the CONCATENATION node to other kernels; "" if it translates it."""
    options = node.options(ConcatenationOptions)
    if not axes_of([options.axis], node.outputs[0].ndim):
        return f"its axis {options.axis} is not in {node.outputs[0]}"
    if options.fused_activation_function is not ActivationFunctionType.NONE and node.outputs[0].type not in FLOAT:
        return f"it is to clamp {node.outputs[0]}"
    return refuses_activation(options.fused_activation_function) or refuses_rescaling(node, node.inputs)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the CONCATENATION node to the graph."""
    options, out = node.options(ConcatenationOptions), node.outputs[0]
    axis = options.axis % out.ndim
    planes = out.ndim == 4 and graph.in_planes(node.inputs)
    values = [graph.planes(tensor) if planes else graph.value(tensor) for tensor in node.inputs]
    made = ov.concat(values, IN_PLANES[axis] if planes else axis)
    graph.put_as(planes, out, activated(made, options.fused_activation_function))


TRANSLATOR = Translator(3, translate, refuses, inputs=(1, 4096), types=MOVED, layer_of_8_bits=True)
