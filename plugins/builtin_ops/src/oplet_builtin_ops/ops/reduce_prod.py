"""REDUCE_PROD: the product over the axes that the second input names; quantized products are rescaled at each step.

Numerics: tflite/kernels/reduce.cc, tflite/kernels/internal/reference/reduce.h (QuantizedReduceProd)
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, Tensor, TensorType, charge, checkpoint, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.fixed_point import (
    clip,
    ensure_scale,
    multiply_by_quantized_multiplier_int64,
    quantize_multiplier,
    quotient,
    single_rounding,
    wide_shift,
)
from oplet_builtin_ops.arithmetic.quantization import ensure_same_quantization
from oplet_builtin_ops.layers.pacing import WORK
from oplet_builtin_ops.layers.program import convert
from oplet_builtin_ops.shaping.reduction import (
    NUMBERS_AND_BOOL,
    QUANTIZED,
    bind_by_ufunc,
    bind_reduction,
    prepare_reduction,
    reduced_axes,
)

#: The most products for which Python numbers are faster than an array.
_FEW: Final = 8
#: Factors between two checks whether all products are zero.
_STRETCH: Final = 32
#: Half of the range of int32, for wrapping Python numbers around.
_HALF_RANGE: Final = 1 << 31
_MASK: Final = (1 << 32) - 1


def _is_quantized(tensor: Tensor) -> bool:
    return tensor.quantization is not None and len(tensor.quantization.scales) > 0


def prepare(context: Context, node: Node) -> None:
    prepare_reduction(context, node, *NUMBERS_AND_BOOL)
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
    # Each of the `count` factors contributes an equal part of the output's scale.
    multiplier, shift = quantize_multiplier(quotient(source.scale, output.scale ** (1.0 / count)))
    kept = [axis for axis in range(source.ndim) if axis not in axes]
    reduced_first = source.data.transpose(*axes, *kept)
    target, limits = output.data.reshape(-1), np.iinfo(output.dtype)
    offset, zero_point = np.int64(source.zero_point), output.zero_point
    fold = _fold_one_by_one if output.size <= _FEW and single_rounding(multiplier, shift)[1] > 0 else _fold

    def run() -> None:
        charge(8 * reduced_first.size)
        # numpy 1 would keep the narrow type.
        factors = np.subtract(reduced_first.reshape(count, output.size), offset, dtype=np.int64)
        product = fold(factors, multiplier, shift)
        result = multiply_by_quantized_multiplier_int64(product, multiplier, shift).astype(np.int64) + zero_point
        convert(target, clip(result, limits.min, limits.max))

    return run


def _fold(factors: NDArray[np.int64], multiplier: int, shift: int) -> NDArray[np.int64]:
    """Multiply up each column of `factors` (steps, columns), rescaling in fixed point after each factor but the first."""
    product: NDArray[np.int64] = factors[0].copy()
    narrow = np.empty(product.shape, np.int32)
    narrow_multiplier, right = single_rounding(multiplier, shift)
    scale, (half, amount) = np.array(narrow_multiplier, np.int64), wide_shift(right)
    often = max(1, WORK // (8 * max(product.size, 1)))
    for number, factor in enumerate(factors[1:]):
        if number % often == 0:
            checkpoint()
        np.multiply(product, factor, product)
        np.multiply(product, scale, product)
        np.add(product, half, product)
        np.right_shift(product, amount, product)
        convert(narrow, product)
        convert(product, narrow)
        if number % _STRETCH == 0 and not product.any():
            break  # once zero, a product stays zero
    return product


def _fold_one_by_one(factors: NDArray[np.int64], multiplier: int, shift: int) -> NDArray[np.int64]:
    """Return what `_fold` returns, computed with Python integers, which is faster for few columns."""
    scale, amount = single_rounding(multiplier, shift)
    half = (1 << amount) >> 1
    products = []
    for column in factors.T:
        values = iter(column.tolist())
        product = next(values)
        for value in values:
            product = ((product * value * scale + half) >> amount) + _HALF_RANGE & _MASK
            product -= _HALF_RANGE
            if not product:
                break
        products.append(product)
    return np.array(products, np.int64)


def _bind(node: Node) -> Thunk:
    if _is_quantized(node.inputs[0]) and node.inputs[0].size:
        return _bind_quantized(node)
    return bind_by_ufunc(node, np.multiply, lambda dtype: 1)


def bind(context: Context, node: Node) -> Thunk:
    return bind_reduction(context, node, _bind)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=NUMBERS_AND_BOOL)
