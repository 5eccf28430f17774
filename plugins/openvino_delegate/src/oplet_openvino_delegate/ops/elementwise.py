"""Elementwise operators: of one operand, of several that are broadcast, conversions, and normalizations along the last dimension."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from typing import Any

import numpy as np
from openvino import opset13 as ov

from oplet import Node, Tensor, TensorType
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import (
    AddOptions,
    DivOptions,
    GeluOptions,
    L2NormOptions,
    LeakyReluOptions,
    MulOptions,
    SoftmaxOptions,
    SubOptions,
)
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.graph import GraphBuilder, Value
from oplet_openvino_delegate.translators import FLOAT, MOVED, translates

__all__: list[str] = []

#: Below this a root of L2_NORMALIZATION counts as this.
_SMALLEST_ROOT = 1e-6


def _operands(graph: GraphBuilder, tensors: Collection[Tensor], out: Tensor) -> tuple[bool, list[Value]]:
    """Return operands that are broadcast in one layout, and whether that is NCHW (if it saves transposes)."""
    planes = out.ndim == 4 and graph.in_planes(tensors)
    return planes, [graph.planes(tensor) if planes else graph.value(tensor) for tensor in tensors]


def _unary(name: str, make: Callable[[Node, Value], Value], **attributes: Any) -> None:
    """Register an operator of one operand, whose result keeps the operand's layout, by what creates OpenVINO's node."""

    @translates(name, **attributes)
    def translate(graph: GraphBuilder, node: Node) -> None:
        planes, value = graph.in_its_layout(node.inputs[0])
        graph.put_as(planes, node.outputs[0], make(node, value))


def _plain(name: str, make: Callable[[Value], Value], **attributes: Any) -> None:
    """Register an operator of one operand and no options."""
    _unary(name, lambda node, x: make(x), **attributes)


_plain("ABS", ov.absolute, layer_of_8_bits=True)
_plain("CEIL", ov.ceiling)
_plain("COS", ov.cos)
_plain("ELU", lambda x: ov.elu(x, 1.0))
_plain("EXP", ov.exp)
_plain("FLOOR", ov.floor)
_plain("HARD_SWISH", ov.hswish, layer_of_8_bits=True)
_plain("LOG", ov.log)
_plain("LOGICAL_NOT", ov.logical_not, types=(TensorType.BOOL,))
_plain("LOGISTIC", ov.sigmoid, newest=3, layer_of_8_bits=True)
_plain("NEG", ov.negative)
_plain("ROUND", lambda x: ov.round(x, "half_to_even"))
_plain("RSQRT", lambda x: ov.divide(np.float32(1), ov.sqrt(x)))
_plain("SIGN", ov.sign)
_plain("SIN", ov.sin)
_plain("SQRT", ov.sqrt)
_plain("SQUARE", lambda x: ov.multiply(x, x))
_plain("TANH", ov.tanh, newest=3, layer_of_8_bits=True)


@translates("LEAKY_RELU", newest=2, layer_of_8_bits=True)
def _leaky_relu(graph: GraphBuilder, node: Node) -> None:
    planes, value = graph.in_its_layout(node.inputs[0])
    alpha = graph.constant(np.array([node.options(LeakyReluOptions).alpha], np.float32))
    graph.put_as(planes, node.outputs[0], ov.prelu(value, alpha))


_unary(
    "GELU",
    lambda node, x: ov.gelu(x, "tanh" if node.options(GeluOptions).approximate else "erf"),
    newest=2,
    layer_of_8_bits=True,
)


def _clamp(name: str, low: float, high: float | None) -> None:
    """Register an operator that clamps to [low, high]; None for no upper bound."""

    @translates(name, newest=2, layer_of_8_bits=low == 0)
    def translate(graph: GraphBuilder, node: Node) -> None:
        data, out = node.inputs[0], node.outputs[0]
        if data in graph.parameters:  # what comes from outside may be NaN, which OpenVINO's RELU would make 0 of
            value = ov.maximum(graph.constant(np.float32(low)), graph.value(data))
            graph.put(out, value if high is None else ov.minimum(graph.constant(np.float32(high)), value))
            return
        planes, value = graph.in_its_layout(data)
        graph.put_as(planes, out, ov.relu(value) if high is None else ov.clamp(value, low, high))


_clamp("RELU", 0.0, None)
_clamp("RELU6", 0.0, 6.0)
_clamp("RELU_0_TO_1", 0.0, 1.0)
_clamp("RELU_N1_TO_1", -1.0, 1.0)


def _binary(
    name: str,
    make: Callable[[Value, Value], Value],
    *,
    options: Any = None,
    outputs: Collection[TensorType] | None = None,
    types: Collection[TensorType] = FLOAT,
    refuses: Callable[[Node], str] = lambda node: "",
    **attributes: Any,
) -> None:
    """Register an operator whose two operands are broadcast.

    Args:
        name: the operator's name.
        make: creates the OpenVINO node from the operands' values.
        options: the class of the operator's options if they have a fused activation, else None.
        outputs: the types that the output may have; None for those in `types`, which operands may have.
        types: the types of operands.
        refuses: what is checked beside the activation and the types.
        attributes: other attributes of `Translator`.
    """

    def activation(node: Node) -> ActivationFunctionType:
        return ActivationFunctionType.NONE if options is None else node.options(options).fused_activation_function

    def refuses_all(node: Node) -> str:
        if outputs is not None and (node.outputs[0].type not in outputs or any(t.type not in types for t in node.inputs)):
            return f"it does not take {node.inputs[0]} to {node.outputs[0]}"
        return refuses_activation(activation(node)) or refuses(node)

    @translates(name, refuses=refuses_all, inputs=(2, 2), types=tuple({*types, *(outputs or ())}), **attributes)
    def translate(graph: GraphBuilder, node: Node) -> None:
        planes, values = _operands(graph, node.inputs, node.outputs[0])
        graph.put_as(planes, node.outputs[0], activated(make(*values), activation(node)))


def _refuses_bounded_quotients(node: Node) -> str:
    if node.options(DivOptions).fused_activation_function != ActivationFunctionType.NONE:
        return "OpenVINO makes a bound of the activation of 0 / 0, which is no number"
    return ""


def _refuses_fractions(node: Node) -> str:
    """Return why an exponent is refused that makes NaN of negative values, which activations treat differently."""
    exponents = node.inputs[1]
    whole = bool((exponents.data == np.rint(exponents.data)).all())
    return "" if whole else f"the exponents {exponents} are not whole: there may be NaN"


_binary("ADD", ov.add, newest=5, options=AddOptions, layer_of_8_bits=True)
_binary("DIV", ov.divide, newest=5, options=DivOptions, refuses=_refuses_bounded_quotients)
_binary("FLOOR_DIV", lambda x, y: ov.floor(ov.divide(x, y)), newest=2)
_binary("FLOOR_MOD", ov.floor_mod)
_binary("MAXIMUM", ov.maximum, newest=5, layer_of_8_bits=True)
_binary("MINIMUM", ov.minimum, newest=5, layer_of_8_bits=True)
_binary("MUL", ov.multiply, newest=5, options=MulOptions, layer_of_8_bits=True)
_binary("POW", ov.power, refuses=_refuses_fractions, needs=(1,))
_binary("SQUARED_DIFFERENCE", ov.squared_difference)
_binary("SUB", ov.subtract, newest=5, options=SubOptions, layer_of_8_bits=True)
for _name, _make in (("LOGICAL_AND", ov.logical_and), ("LOGICAL_OR", ov.logical_or)):
    _binary(_name, _make, types=(TensorType.BOOL,))
for _name, _make in (
    ("EQUAL", ov.equal),
    ("NOT_EQUAL", ov.not_equal),
    ("LESS", ov.less),
    ("LESS_EQUAL", ov.less_equal),
    ("GREATER", lambda x, y: ov.less(y, x)),  # OpenVINO 2026.4's Greater and GreaterEqual are true for NaN
    ("GREATER_EQUAL", lambda x, y: ov.less_equal(y, x)),
):
    _binary(_name, _make, newest=2, outputs=(TensorType.BOOL,))


@translates("ADD_N", inputs=(2, 1024))
def _add_n(graph: GraphBuilder, node: Node) -> None:
    planes, values = _operands(graph, node.inputs, node.outputs[0])
    graph.put_as(planes, node.outputs[0], reduce(ov.add, values))


@translates("PRELU", inputs=(2, 2), layer_of_8_bits=True)
def _prelu(graph: GraphBuilder, node: Node) -> None:
    (data, alpha), out = node.inputs, node.outputs[0]
    planes, (value, slope) = _operands(graph, (data, alpha), out)
    if planes and alpha.ndim and alpha.size == alpha.shape[-1] == data.shape[-1]:  # one for each channel: OpenVINO's own operator
        graph.put_planes(out, ov.prelu(value, graph.reshaped(slope, (alpha.size,))))
        return
    zero = graph.constant(np.float32(0))
    graph.put_as(planes, out, ov.add(ov.maximum(value, zero), ov.multiply(ov.minimum(value, zero), slope)))


def _refuses_selection(node: Node) -> str:
    condition, one, other = node.inputs
    if condition.type is not TensorType.BOOL or one.type is not other.type or one.type is not node.outputs[0].type:
        return f"it does not choose by {condition} between {one} and {other}"
    return ""


@translates("SELECT", "SELECT_V2", refuses=_refuses_selection, inputs=(3, 3), types=MOVED)
def _select(graph: GraphBuilder, node: Node) -> None:
    (condition, one, other), out = node.inputs, node.outputs[0]
    if node.op_name == "SELECT" and condition.ndim == 1 and out.ndim > 1:  # a vector that chooses whole rows
        chosen = graph.reshaped(graph.value(condition), (condition.size,) + (1,) * (out.ndim - 1))
        graph.put(out, ov.select(chosen, graph.value(one), graph.value(other)))
        return
    planes, values = _operands(graph, (condition, one, other), out)
    graph.put_as(planes, out, ov.select(*values))


def _refuses_cast(node: Node) -> str:
    if node.inputs[0].type is TensorType.FLOAT32 and node.outputs[0].type is TensorType.INT32:
        return "OpenVINO cuts floats that do not fit INT32 otherwise"
    return ""


@translates("CAST", newest=6, refuses=_refuses_cast, types=MOVED)
def _cast(graph: GraphBuilder, node: Node) -> None:
    data, out = node.inputs[0], node.outputs[0]
    value = graph.value(data)
    if out.type is TensorType.BOOL:
        graph.put(out, value if data.type is out.type else ov.not_equal(value, graph.constant(np.zeros((), data.dtype))))
        return
    graph.put(out, ov.convert(value, {TensorType.FLOAT32: "f32", TensorType.INT32: "i32"}[out.type]))


def _rescaling(name: str, newest: int, *, to_real: bool) -> None:
    """Register QUANTIZE or DEQUANTIZE: in the graph all values are real, and `GraphBuilder` rounds those of quantized tensors."""

    def refuses(node: Node) -> str:
        data, out = node.inputs[0], node.outputs[0]
        real, scaled = (out, data) if to_real else (data, out)
        if real.type is not TensorType.FLOAT32 or scaled.type is TensorType.FLOAT32:
            return f"it is to make {out} of {data}"
        return ""

    types = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8)
    _plain(name, lambda x: x, newest=newest, refuses=refuses, types=types)


_rescaling("DEQUANTIZE", 6, to_real=True)
_rescaling("QUANTIZE", 3, to_real=False)


def _refuses_scalars(node: Node) -> str:
    return "" if node.inputs[0].ndim else "there is no last dimension in a scalar"


@translates("SOFTMAX", newest=3, refuses=_refuses_scalars, layer_of_8_bits=True)
def _softmax(graph: GraphBuilder, node: Node) -> None:
    data, beta = node.inputs[0], node.options(SoftmaxOptions).beta
    planes, value = graph.in_its_layout(data)
    if beta != 1:
        value = ov.multiply(value, graph.constant(np.float32(beta)))
    graph.put_as(planes, node.outputs[0], ov.softmax(value, 1 if planes else data.ndim - 1))


@translates("LOG_SOFTMAX", refuses=_refuses_scalars)
def _log_softmax(graph: GraphBuilder, node: Node) -> None:
    data = node.inputs[0]
    graph.put(node.outputs[0], ov.log_softmax(graph.value(data), data.ndim - 1))


def _refuses_norm(node: Node) -> str:
    return _refuses_scalars(node) or refuses_activation(node.options(L2NormOptions).fused_activation_function)


@translates("L2_NORMALIZATION", newest=2, refuses=_refuses_norm)
def _l2_normalization(graph: GraphBuilder, node: Node) -> None:
    data = node.inputs[0]
    planes, value = graph.in_its_layout(data)
    axis = graph.constant(np.array([1 if planes else data.ndim - 1], np.int64))
    root = ov.sqrt(ov.reduce_sum(ov.multiply(value, value), axis, True))
    made = ov.divide(value, ov.maximum(root, graph.constant(np.float32(_SMALLEST_ROOT))))
    graph.put_as(planes, node.outputs[0], activated(made, node.options(L2NormOptions).fused_activation_function))
