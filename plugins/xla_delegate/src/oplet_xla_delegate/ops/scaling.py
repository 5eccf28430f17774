"""QUANTIZE and DEQUANTIZE: from real numbers to integers that stand for them, and back."""

from __future__ import annotations

from typing import Any

from oplet import Node, TensorType
from oplet_xla_delegate.quantization import QUANTIZED, dequantized, one_scale
from oplet_xla_delegate.tracing import Trace
from oplet_xla_delegate.translators import FLOATS, translates

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
