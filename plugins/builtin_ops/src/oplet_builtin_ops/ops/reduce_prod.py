"""REDUCE_PROD: the product over the axes that the second input names; quantized products are rescaled at each step.

Numerics: tflite/kernels/reduce.cc, tflite/kernels/internal/reference/reduce.h (QuantizedReduceProd)
"""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure
from oplet_builtin_ops.arithmetic.fixed_point import (
    clip,
    ensure_scale,
    multiply_by_quantized_multiplier_int64,
    quantize_multiplier,
)
from oplet_builtin_ops.layers.program import convert
from oplet_builtin_ops.shaping.reduction import NUMBERS, QUANTIZED, bind_by_ufunc, bind_reduction, prepare_reduction, reduced_axes
from oplet_builtin_ops.shaping.shapes import Thunk, ensure_same_quantization


def _is_quantized(tensor: Tensor) -> bool:
    return tensor.quantization is not None and len(tensor.quantization.scales) > 0


def prepare(context: Context, node: Node) -> None:
    prepare_reduction(context, node, *NUMBERS)
    source, output = node.inputs[0], node.outputs[0]
    if _is_quantized(source):
        ensure(
            source.type in (TensorType.INT8, TensorType.INT16),
            f"{source} is quantized and of type {source.type.name}; this op takes quantized INT8 and INT16.",
        )
        ensure_scale(source)
        ensure_scale(output)
    elif source.type in QUANTIZED:
        ensure_same_quantization(source, output)


def _bind_quantized(node: Node) -> Thunk:
    source, output, axes = node.inputs[0], node.outputs[0], reduced_axes(node)
    count = prod(source.shape[axis] for axis in axes)
    # Each of the `count` factors brings its share of the output's scale.
    multiplier, shift = quantize_multiplier(source.scale / output.scale ** (1.0 / count))
    kept = [axis for axis in range(source.ndim) if axis not in axes]
    reduced_first = source.data.transpose(*axes, *kept)
    target, limits = output.data.reshape(-1), np.iinfo(output.dtype)
    offset, zero_point = np.int64(source.zero_point), output.zero_point

    def run() -> None:
        factors = reduced_first.reshape(count, output.size)
        product = factors[0].astype(np.int64) - offset
        for factor in factors[1:]:
            product = multiply_by_quantized_multiplier_int64(product * (factor - offset), multiplier, shift).astype(np.int64)
        result = multiply_by_quantized_multiplier_int64(product, multiplier, shift).astype(np.int64) + zero_point
        convert(target, clip(result, limits.min, limits.max))

    return run


def _bind(node: Node) -> Thunk:
    if _is_quantized(node.inputs[0]) and node.inputs[0].size:
        return _bind_quantized(node)
    return bind_by_ufunc(node, np.multiply, lambda dtype: 1)


def bind(context: Context, node: Node) -> Thunk:
    return bind_reduction(context, node, _bind)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=NUMBERS)
