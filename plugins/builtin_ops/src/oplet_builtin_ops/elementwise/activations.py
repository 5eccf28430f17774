"""RELU and the other clamps, and shared parts of activation ops: checks, and look-up tables for quantized types.

Numerics: tflite/kernels/activations.cc
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.fixed_point import clip, int32_of, multiply_by_quantized_multiplier, quantize_multiplier, quantized_range
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.arithmetic.lookup import LookupRule, lookup, lookup_table
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero
from oplet_builtin_ops.arithmetic.single_precision import takes_halves

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["bind_lookup", "clamp_registration", "prepare_lookup", "prepare_unary", "scale_ratio", "scaled"]

_FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16)


def prepare_unary(context: Context, node: Node, *types: TensorType) -> tuple[Tensor, Tensor]:
    """Check a node whose input and output have the same type and shape; resize the output; return (input, output).

    Quantized tensors must have a scale, int16 ones the zero point 0.
    """
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *types)
    ensure_same_type(source, output)
    if source.type not in _FLOATS:
        ensure_quantized(source, output)
    if source.type == TensorType.INT16:
        ensure_zero_point_is_zero(source, output)
    context.resize_tensor(output, source.shape)
    return source, output


def scale_ratio(source: Tensor, output: Tensor, factor: float = 1.0) -> float:
    """Compute source.scale * factor / output.scale in float32, as LiteRT's activations do."""
    with np.errstate(all="ignore"):
        return float(np.float32(source.scale) * np.float32(factor) / np.float32(output.scale))


def scaled(values: NDArray[np.int64], ratio: float) -> NDArray[np.int64]:
    """Compute values * ratio in fixed point; if the ratio exceeds float32, the result is 0, as in LiteRT."""
    if not math.isfinite(ratio):
        return np.zeros(values.shape, np.int64)
    return multiply_by_quantized_multiplier(values.astype(np.int32), *quantize_multiplier(ratio)).astype(np.int64)


def prepare_lookup(node: Node, rule: LookupRule, numbers: Hashable = None) -> None:
    """Build the look-up table of a quantized unary op; with `numbers`, all that `rule` depends on, once for all nodes of equal ones."""
    types = node.inputs[0].type, node.outputs[0].type
    shared = True if numbers is None else "everywhere"
    node.prepared = node.cached(("table", *types, numbers), (), lambda: lookup_table(*types, rule), shared=shared)


def bind_lookup(node: Node) -> Thunk:
    """Return the function that runs a node through the look-up table that `prepare` stored in `node.prepared`."""
    return lookup(node.prepared, node.inputs[0].data, node.outputs[0].data)


def _quantized_bound(bound: float, output: Tensor) -> int:
    """Quantize a clamp bound with the output's scale, with C++'s overflow: -2**31 beyond int32, wrapping zero-point addition."""
    with np.errstate(all="ignore"):
        steps = np.float64(np.float32(bound) / np.float32(output.scale))
        rounded = np.copysign(np.floor(np.abs(steps) + 0.5), steps)
    return int((int32_of(rounded).astype(np.int64) + output.zero_point).astype(np.int32))


def clamp_registration(low: float, high: float, *quantized: TensorType) -> Registration:
    """Build the registration of RELU, RELU6 or another op that clamps to [low, high].

    Args:
        low: the lower bound.
        high: the upper bound, which may be infinite.
        quantized: the integer types that the op takes besides float32; they are also rescaled to the output.
    """
    types = (TensorType.FLOAT32, *quantized)
    lowest, highest = np.array(low, np.float32), np.array(high, np.float32)

    def prepare(context: Context, node: Node) -> None:
        source, output = prepare_unary(context, node, *types)
        offer_in_place(node)
        if source.type == TensorType.FLOAT32:
            return
        least, most = quantized_range(output.type)
        bottom = max(least, _quantized_bound(low, output))
        top = most if math.isinf(high) else min(most, _quantized_bound(high, output))
        ratio = scale_ratio(source, output)

        def rule(values: NDArray[np.int64]) -> NDArray[np.int64]:
            clamped = np.minimum(np.maximum(scaled(values - source.zero_point, ratio) + output.zero_point, bottom), top)
            # A bound beyond int32 may be beyond the type as well; its low bits are kept, as in C++.
            return clamped.astype(output.dtype).astype(np.int64)

        prepare_lookup(node, rule)

    def bind(context: Context, node: Node) -> Thunk:
        source, output = node.inputs[0].data, node.outputs[0].data
        if node.inputs[0].type != TensorType.FLOAT32:
            return bind_lookup(node)

        def run() -> None:
            clip(source, lowest, highest, output)

        return run

    return Registration(prepare=prepare, bind=bind, pure=True, types=types)


RELU = takes_halves(clamp_registration(0.0, math.inf, TensorType.INT8, TensorType.UINT8, TensorType.INT16))
RELU6 = takes_halves(clamp_registration(0.0, 6.0, TensorType.INT8, TensorType.UINT8, TensorType.INT16))
RELU_0_TO_1 = clamp_registration(0.0, 1.0, TensorType.INT8, TensorType.UINT8)
RELU_N1_TO_1 = takes_halves(clamp_registration(-1.0, 1.0, TensorType.INT8, TensorType.UINT8))
