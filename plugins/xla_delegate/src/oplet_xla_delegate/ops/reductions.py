"""Reductions, searches, sorts and sums along axes.

QUANTIZE and DEQUANTIZE: from real numbers to integers that stand for them, and back.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from oplet import Node, TensorType
from oplet.schema.options import CumsumOptions, L2NormOptions, ReducerOptions, SoftmaxOptions
from oplet_xla_delegate.activations import activated, refuses_activation
from oplet_xla_delegate.quantization import EIGHT_BITS, QUANTIZED, dequantized, one_scale
from oplet_xla_delegate.tracing import Trace
from oplet_xla_delegate.translators import FLOATS, MOVED, NUMBERS, axes_of, integers, translates


def _reduction(name: str, compute: Any, types: Any, *, real: bool = False) -> None:
    def refuses(node: Node) -> str:
        axes_of(integers(node.inputs[1]), node.inputs[0].ndim)
        return "" if node.inputs[0].ndim else "there is nothing to reduce in a scalar"

    @translates(name, newest=4, inputs=(2, 2), types=types, constants=(1,), refuses=refuses, real=real)
    def translate(trace: Trace, node: Node, x: Any, _: Any) -> Any:
        axes = tuple(sorted(set(axes_of(integers(node.inputs[1]), x.ndim))))
        made = compute(x, axis=axes, keepdims=node.options(ReducerOptions).keep_dims) if axes else x
        return made.astype(x.dtype)


for _name, _compute in {"SUM": jnp.sum, "REDUCE_PROD": jnp.prod}.items():
    _reduction(_name, _compute, NUMBERS, real=True)
_reduction("MEAN", jnp.mean, FLOATS, real=True)
_reduction("REDUCE_MAX", jnp.max, NUMBERS, real=True)
_reduction("REDUCE_MIN", jnp.min, NUMBERS, real=True)
_reduction("REDUCE_ANY", jnp.any, (TensorType.BOOL,))
_reduction("REDUCE_ALL", jnp.all, (TensorType.BOOL,))


def _search(name: str, largest: bool) -> None:
    def refuses(node: Node) -> str:
        axes_of(integers(node.inputs[1]), node.inputs[0].ndim)
        return "" if node.inputs[1].size == 1 else f"its axes are {integers(node.inputs[1])}"

    @translates(name, newest=4, inputs=(2, 2), types=MOVED, constants=(1,), refuses=refuses)
    def translate(trace: Trace, node: Node, x: Any, _: Any) -> Any:
        if jnp.issubdtype(x.dtype, jnp.floating):  # NaN is chosen only where there is nothing else
            x = jnp.where(jnp.isnan(x), -jnp.inf if largest else jnp.inf, x)
        axis = integers(node.inputs[1])[0] % x.ndim
        return (lax.argmax if largest else lax.argmin)(x, axis, node.outputs[0].dtype)


_search("ARG_MAX", True)
_search("ARG_MIN", False)


@translates("TOPK_V2", newest=3, inputs=(2, 2), outputs=2, types=(TensorType.FLOAT32, TensorType.INT32), constants=(1,))
def _topk_v2(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    values, places = lax.top_k(x, integers(node.inputs[1])[0])
    return values, places.astype(node.outputs[1].dtype)


def _refuses_scalar(node: Node) -> str:
    return "" if node.inputs[0].ndim else "there is no last dimension in a scalar"


@translates("SOFTMAX", newest=4, refuses=_refuses_scalar, real=True, scaled=EIGHT_BITS)
def _softmax(trace: Trace, node: Node, x: Any) -> Any:
    return jax.nn.softmax(x * x.dtype.type(node.options(SoftmaxOptions).beta), axis=-1)


@translates("LOG_SOFTMAX", newest=2, refuses=_refuses_scalar, real=True, scaled=EIGHT_BITS)
def _log_softmax(trace: Trace, node: Node, x: Any) -> Any:
    return jax.nn.log_softmax(x, axis=-1)


def _refuses_norm(node: Node) -> str:
    return _refuses_scalar(node) or refuses_activation(node, L2NormOptions)


@translates("L2_NORMALIZATION", newest=2, refuses=_refuses_norm)
def _l2_normalization(trace: Trace, node: Node, x: Any) -> Any:
    root = jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))
    return activated(x / jnp.maximum(root, x.dtype.type(1e-6)), node, L2NormOptions)


@translates("CUMSUM", inputs=(2, 2), types=NUMBERS, constants=(1,))
def _cumsum(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    options, axis = node.options(CumsumOptions), axes_of(integers(node.inputs[1]), x.ndim)[0]
    total = lax.cumsum(x, axis, reverse=options.reverse)
    if not options.exclusive:
        return total
    edge = (-1, 1, 0) if options.reverse else (1, -1, 0)
    return lax.pad(total, jnp.zeros((), x.dtype), [edge if at == axis else (0, 0, 0) for at in range(x.ndim)])


_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, *QUANTIZED)


def _refuses_dequantize(node: Node) -> str:
    data, out = node.inputs[0], node.outputs[0]
    fits = out.type is TensorType.FLOAT32 and (data.type in FLOATS[1:3] or one_scale(data))
    return "" if fits else f"it is to make {out} of {data}"


@translates("DEQUANTIZE", newest=6, types=_TYPES, moves=True, refuses=_refuses_dequantize)
def _dequantize(trace: Trace, node: Node, x: Any) -> Any:
    return dequantized(x, node.inputs[0])


def _refuses_quantize(node: Node) -> str:
    data, out = node.inputs[0], node.outputs[0]
    fits = one_scale(out) and (data.type is TensorType.FLOAT32 or one_scale(data))
    return "" if fits else f"it is to make {out} of {data}"


@translates("QUANTIZE", newest=4, types=_TYPES, scaled=_TYPES, real=True, refuses=_refuses_quantize)
def quantize(trace: Trace, node: Node, x: Any) -> Any:
    """Return the outputs of QUANTIZE as traced jax values: real numbers, which the trace quantizes like all quantized outputs."""
    return x
