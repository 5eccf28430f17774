"""Operators of one operand, element by element."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from oplet import Node, TensorType
from oplet.schema.options import GeluOptions, LeakyReluOptions
from oplet_xla_delegate.quantization import EIGHT_BITS, QUANTIZED
from oplet_xla_delegate.tracing import Trace
from oplet_xla_delegate.translators import FLOATS, NUMBERS, translates

_REAL = {
    "CEIL": jnp.ceil,
    "COS": jnp.cos,
    "ELU": jax.nn.elu,
    "EXP": jnp.exp,
    "FLOOR": jnp.floor,
    "LOG": jnp.log,
    "LOGISTIC": jax.nn.sigmoid,
    "ROUND": jnp.round,
    "RSQRT": lax.rsqrt,
    "SIN": jnp.sin,
    "SQRT": jnp.sqrt,
    "TANH": jnp.tanh,
    "RELU": lambda x: jnp.maximum(x, 0),
    "RELU6": lambda x: jnp.clip(x, 0, 6),
    "RELU_0_TO_1": lambda x: jnp.clip(x, 0, 1),
    "RELU_N1_TO_1": lambda x: jnp.clip(x, -1, 1),
    "HARD_SWISH": lambda x: x * (jnp.clip(x + 3, 0, 6) * x.dtype.type(1 / 6)),
}
_OF_NUMBERS = {"ABS": jnp.abs, "NEG": jnp.negative, "SIGN": jnp.sign, "SQUARE": lambda x: x * x}


def _register(name: str, compute: Any, **attributes: Any) -> None:
    @translates(name, newest=6, real=True, **attributes)
    def translate(trace: Trace, node: Node, x: Any) -> Any:
        return compute(x)


for _name, _compute in _REAL.items():
    _register(_name, _compute, types=FLOATS, scaled=EIGHT_BITS if _name == "RSQRT" else QUANTIZED)
for _name, _compute in _OF_NUMBERS.items():
    _register(_name, _compute, types=NUMBERS)


@translates("ZEROS_LIKE", types=(*NUMBERS, TensorType.BOOL))
def _zeros_like(trace: Trace, node: Node, x: Any) -> Any:
    return jnp.zeros_like(x)


@translates("LOGICAL_NOT", types=(TensorType.BOOL,))
def _logical_not(trace: Trace, node: Node, x: Any) -> Any:
    return ~x


@translates("GELU", newest=2, real=True)
def _gelu(trace: Trace, node: Node, x: Any) -> Any:
    return jax.nn.gelu(x, approximate=node.options(GeluOptions).approximate)


@translates("LEAKY_RELU", newest=2, real=True)
def _leaky_relu(trace: Trace, node: Node, x: Any) -> Any:
    return jnp.where(x > 0, x, x * x.dtype.type(node.options(LeakyReluOptions).alpha))


def _refuses_cast(node: Node) -> str:
    data, out = node.inputs[0], node.outputs[0]
    if data.type in FLOATS and out.type not in (*FLOATS, TensorType.INT32, TensorType.BOOL):
        return f"XLA cuts floats that do not fit {out.type.name} otherwise"
    return ""


@translates("CAST", newest=7, types=(*NUMBERS, TensorType.BOOL), refuses=_refuses_cast, moves=True)
def _cast(trace: Trace, node: Node, x: Any) -> Any:
    return converted(x, node.outputs[0].dtype)


def converted(x: Any, dtype: Any) -> Any:
    """Convert a jax value to another dtype; floats outside of int32 become the lowest int32, as on x86."""
    if dtype == np.bool_:
        return x != 0
    if dtype == np.int32 and jnp.issubdtype(x.dtype, jnp.floating):
        fits = (x >= -(2.0**31)) & (x < 2.0**31)
        return jnp.where(fits, x, 0).astype(dtype) + jnp.where(fits, 0, -(2**31)).astype(dtype)
    return x.astype(dtype)
