"""Families of operators that work element by element."""

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
    """An operator of one value, in whatever layout it comes."""

    def translate(graph: GraphBuilder, node: Node) -> None:
        data = node.inputs[0]
        planes = graph.in_planes([data])
        graph.put_as(planes, node.outputs[0], make(graph.planes(data) if planes else graph.value(data)))

    return Translator(newest, translate, types=types, layer_of_8_bits=layer_of_8_bits)


def operands(graph: GraphBuilder, tensors: Collection[Tensor], out: Tensor) -> tuple[bool, list[Value]]:
    """Values that are to be combined by numpy's rules, all in the layout that spares transposes, and whether that is planes."""
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
    """An operator of several values that are broadcast, with a fused activation if it has `options`."""

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
    """A comparison of two floats, which gives a bool."""
    return broadcasting(make, newest=newest, outputs=(TensorType.BOOL,))


def logical(make: Made) -> Translator:
    """An operator of two bools."""
    return broadcasting(make, newest=1, types=(TensorType.BOOL,))
