"""Operators of two operands and more, element by element with broadcasting."""

from __future__ import annotations

from functools import reduce
from typing import Any

import jax.numpy as jnp

from oplet import Node, TensorType
from oplet.schema.options import AddOptions, DivOptions, MulOptions, SubOptions
from oplet_xla_delegate.activations import activated, refuses_activation
from oplet_xla_delegate.quantization import is_quantized
from oplet_xla_delegate.tracing import Trace
from oplet_xla_delegate.translators import FLOATS, INTEGERS, MOVED, NUMBERS, translates

_BOOL = (TensorType.BOOL,)


def _fused(name: str, compute: Any, options: Any, types: Any) -> None:
    def refuses(node: Node) -> str:
        return refuses_activation(node, options)

    @translates(name, newest=8, inputs=(2, 2), types=types, refuses=refuses, real=True)
    def translate(trace: Trace, node: Node, x: Any, y: Any) -> Any:
        return activated(compute(x, y), node, options)


_fused("ADD", jnp.add, AddOptions, NUMBERS)
_fused("SUB", jnp.subtract, SubOptions, NUMBERS)
_fused("MUL", jnp.multiply, MulOptions, NUMBERS)
_fused("DIV", jnp.divide, DivOptions, FLOATS)


def _plain(name: str, compute: Any, types: Any, *, real: bool = False) -> None:
    @translates(name, newest=5, inputs=(2, 2), types=types, real=real)
    def translate(trace: Trace, node: Node, x: Any, y: Any) -> Any:
        return compute(x, y)


_plain("MAXIMUM", jnp.maximum, NUMBERS, real=True)
_plain("MINIMUM", jnp.minimum, NUMBERS, real=True)
_plain("SQUARED_DIFFERENCE", lambda x, y: (x - y) * (x - y), NUMBERS, real=True)
_plain("FLOOR_DIV", lambda x, y: jnp.floor(x / y), FLOATS)
_plain("FLOOR_MOD", lambda x, y: jnp.mod(x, y), FLOATS)
_plain("POW", jnp.power, FLOATS)
_plain("ATAN2", jnp.arctan2, (TensorType.FLOAT32, TensorType.FLOAT64))
_plain("LOGICAL_AND", jnp.logical_and, _BOOL)
_plain("LOGICAL_OR", jnp.logical_or, _BOOL)


def _comparison(name: str, compute: Any) -> None:
    def refuses(node: Node) -> str:
        x, y = node.inputs
        if x.type is not y.type or node.outputs[0].type is not TensorType.BOOL:
            return f"it is to compare {x} with {y} to {node.outputs[0]}"
        if is_quantized(x) and (x.scale, x.zero_point, y.scale, y.zero_point) != (y.scale, y.zero_point, x.scale, x.zero_point):
            return f"{x} and {y} have different scales"
        return ""

    @translates(name, newest=4, inputs=(2, 2), types=MOVED, refuses=refuses)
    def translate(trace: Trace, node: Node, x: Any, y: Any) -> Any:
        return compute(x, y)


for _name, _compute in {
    "EQUAL": jnp.equal,
    "NOT_EQUAL": jnp.not_equal,
    "GREATER": jnp.greater,
    "GREATER_EQUAL": jnp.greater_equal,
    "LESS": jnp.less,
    "LESS_EQUAL": jnp.less_equal,
}.items():
    _comparison(_name, _compute)


@translates("ADD_N", inputs=(2, 1024), types=NUMBERS)
def _add_n(trace: Trace, node: Node, *values: Any) -> Any:
    return reduce(jnp.add, values)


@translates("PRELU", inputs=(2, 2), real=True)
def _prelu(trace: Trace, node: Node, x: Any, alpha: Any) -> Any:
    return jnp.where(x >= 0, x, x * alpha)


@translates("BITWISE_XOR", inputs=(2, 2), types=(*INTEGERS, TensorType.BOOL))
def _bitwise_xor(trace: Trace, node: Node, x: Any, y: Any) -> Any:
    return x ^ y


def _refuses_selection(node: Node) -> str:
    condition, one, other = node.inputs
    if condition.type is not TensorType.BOOL or one.type is not other.type or one.type is not node.outputs[0].type:
        return f"it does not choose by {condition} between {one} and {other}"
    return ""


@translates("SELECT", "SELECT_V2", newest=5, inputs=(3, 3), types=MOVED, refuses=_refuses_selection, moves=True)
def select(trace: Trace, node: Node, condition: Any, one: Any, other: Any) -> Any:
    """Return the outputs of SELECT or SELECT_V2 as traced jax values; SELECT's condition may be a vector that chooses whole rows."""
    out = node.outputs[0]
    if node.op_name == "SELECT":
        if condition.ndim == 1 and out.ndim > 1:
            condition = condition.reshape((condition.size,) + (1,) * (out.ndim - 1))
        elif condition.size == 1:
            condition = condition.reshape(())
    return jnp.broadcast_to(jnp.where(condition, one, other), out.shape)
