"""Translators of elementwise operators, from .tflite models to OpenVINO's graphs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from oplet import Node, Tensor, TensorType
from oplet.schema.enums import ActivationFunctionType
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.graph import GraphBuilder, Value
from oplet_openvino_delegate.translators import FLOAT, Translator

Made = Callable[..., Value]


def unary(
    make: Callable[[Value], Value],
    *,
    newest: int = 1,
    types: Collection[TensorType] = FLOAT,
    layer_of_8_bits: bool = False,
) -> Translator:
    """Build the translator of a unary operator from a function that creates OpenVINO's node.

    The result keeps the operand's layout (NCHW or NHWC).

    The other arguments are attributes of `Translator`: the newest version, the allowed types, whether quantized nodes are taken.
    """

    def translate(graph: GraphBuilder, node: Node) -> None:
        data = node.inputs[0]
        planes = graph.in_planes([data])
        graph.put_as(planes, node.outputs[0], make(graph.planes(data) if planes else graph.value(data)))

    return Translator(newest, translate, types=types, layer_of_8_bits=layer_of_8_bits)


def operands(graph: GraphBuilder, tensors: Collection[Tensor], out: Tensor) -> tuple[bool, list[Value]]:
    """Return the operands of a broadcasting operator in one layout, and whether that is NCHW (if it saves transposes).

    Args:
        graph: the graph.
        tensors: the operands.
        out: the result.
    """
    planes = out.ndim == 4 and graph.in_planes(tensors)
    return planes, [graph.planes(tensor) if planes else graph.value(tensor) for tensor in tensors]


def broadcasting(
    make: Made,
    *,
    newest: int,
    inputs: int = 2,
    types: Collection[TensorType] = FLOAT,
    outputs: Collection[TensorType] | None = None,
    options: Any = None,
    layer_of_8_bits: bool = False,
) -> Translator:
    """Build the translator of a broadcasting operator.

    Args:
        make: creates the OpenVINO node from the inputs' values.
        inputs: the number of inputs.
        outputs: the types that the output may have; None for those in `types`, which inputs may have.
        options: the class of the operator's options if they have a fused activation, else None.
        newest, layer_of_8_bits: attributes of `Translator`: the newest version, whether quantized nodes are taken.
    """

    def activation(node: Node) -> ActivationFunctionType:
        return ActivationFunctionType.NONE if options is None else node.options(options).fused_activation_function

    def refuses(node: Node) -> str:
        if outputs is not None and (node.outputs[0].type not in outputs or any(t.type not in types for t in node.inputs)):
            return f"it does not take {node.inputs[0]} to {node.outputs[0]}"
        return refuses_activation(activation(node))

    def translate(graph: GraphBuilder, node: Node) -> None:
        planes, values = operands(graph, node.inputs, node.outputs[0])
        graph.put_as(planes, node.outputs[0], activated(make(*values), activation(node)))

    allowed = types if outputs is None else tuple({*types, *outputs})
    return Translator(newest, translate, refuses, inputs=(inputs, inputs), types=allowed, layer_of_8_bits=layer_of_8_bits)


def comparison(make: Made, *, newest: int = 2) -> Translator:
    """Build the translator of a comparison of floats, with bool result."""
    return broadcasting(make, newest=newest, outputs=(TensorType.BOOL,))


def logical(make: Made) -> Translator:
    """Build the translator of a binary bool operator."""
    return broadcasting(make, newest=1, types=(TensorType.BOOL,))
