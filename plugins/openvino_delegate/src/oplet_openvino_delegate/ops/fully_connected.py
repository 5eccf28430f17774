"""FULLY_CONNECTED on float32."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.enums import FullyConnectedOptionsWeightsFormat
from oplet.schema.options import FullyConnectedOptions
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.convolutions import real_bias
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the FULLY_CONNECTED node to other kernels; "" if it translates it."""
    options, (data, weights), bias = node.options(FullyConnectedOptions), node.inputs[:2], node.optional_input(2)
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return f"its weights are {options.weights_format!r}"
    if weights.ndim != 2 or data.size % weights.shape[1]:
        return f"{weights} does not fit {data}"
    if bias is not None and bias.size != weights.shape[0]:
        return f"{bias} is no bias of {weights.shape[0]} units"
    return refuses_activation(options.fused_activation_function)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the FULLY_CONNECTED node to the graph."""
    (data, weights), bias, out = node.inputs[:2], node.optional_input(2), node.outputs[0]
    units, depth = weights.shape
    rows = graph.reshaped(graph.flat(data), (data.size // depth, depth))
    made = ov.matmul(rows, graph.value(weights), False, True)
    if bias is not None:
        constant = bias.is_constant
        bias_row = (
            graph.constant(real_bias(bias, data, weights).reshape(1, units))
            if constant
            else graph.reshaped(graph.value(bias), (1, units))
        )
        made = ov.add(made, bias_row)
    made = activated(made, node.options(FullyConnectedOptions).fused_activation_function)
    graph.put(out, graph.reshaped(made.output(0), out.shape))


TRANSLATOR = Translator(14, translate, refuses, inputs=(2, 3), optional=(2,), layer_of_8_bits=True, bias=2)
