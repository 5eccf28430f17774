"""Layer normalization of int16 values in integer arithmetic, for quantized LSTM gates.

Numerics: PortableApplyLayerNorm in tflite/kernels/internal/reference/portable_tensor_utils.cc and
GetInvSqrtQuantizedMultiplierExp in tflite/kernels/internal/common.cc
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oplet import Tensor, checkpoint
from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import clip, ensure_scale, multiply_by_quantized_multiplier, quantize_multiplier
from oplet_builtin_ops.arithmetic.integer_products import rescale_calls
from oplet_builtin_ops.layers.program import Call

__all__ = ["IntegerLayerNorm", "inverse_square_root"]

_INT16 = np.array(-32768, np.int64), np.array(32767, np.int64)


def _divide(a: int, b: int) -> int:
    """Divide and truncate towards zero, as C does."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _product(a: int, b: int) -> int:
    return (a * b + (1 << 30)) >> 31


def _shift_left_saturating(a: int, amount: int) -> int:
    return min(max(a << amount, -(2**31)), 2**31 - 1)


def inverse_square_root(x: int) -> tuple[int, int]:
    """Compute 1 / sqrt(x) of an int32 as multiplier * 2**(shift - 31), by five Newton steps; return (multiplier, shift)."""
    if x <= 1:
        return 2**31 - 1, 0
    shift = 11
    while x >= 1 << 29:
        x //= 4
        shift += 1
    pairs = (31 - x.bit_length()) // 2 - 1
    shift -= pairs
    x <<= 2 * pairs
    value = x >> 1
    half = (value + 1) >> 1
    estimate = 1 << 28
    for _ in range(5):
        # Numbers have 3 integer bits, products of three of them 9.
        cube = _shift_left_saturating(_product(_product(estimate, estimate), estimate), 6)
        estimate = _shift_left_saturating(_product((1 << 28) + (1 << 27), estimate) - _product(half, cube), 3)
    result = _product(estimate, 1518500250)
    return (result << -shift, 0) if shift < 0 else (result, -shift)


@dataclass(frozen=True)
class IntegerLayerNorm:
    """Parameters of the layer normalization of one gate.

    Attributes:
        coefficients: one per cell: int16 values, as int64.
        bias: one per cell: int32 values, as int64.
        multiplier: the coefficients' scale is multiplier * 2**(shift - 31).
        shift: the exponent of that product.
        guard: the variance that is used where it is below 1.
    """

    coefficients: Array
    bias: Array
    multiplier: int
    shift: int
    guard: int

    @classmethod
    def of(cls, coefficients: Tensor, bias: Tensor) -> IntegerLayerNorm:
        """Build the normalization from its coefficient and bias tensors."""
        scale = ensure_scale(coefficients)
        guard = max(1, int(np.float32(10000) * np.float32(scale)))
        return cls(coefficients.data.astype(np.int64), bias.data.astype(np.int64), *quantize_multiplier(scale), guard)

    def calls(self, values: Array) -> list[Call]:
        """Return numpy calls that normalize int64 values in the int16 range, (batches, cells), in place."""
        rescaling = rescale_calls(values, self.multiplier, self.shift + 12, np.empty_like(values))
        return [(self._weigh, (values,)), *rescaling, (clip, (values, *_INT16, values))]

    def _weigh(self, values: Array) -> None:
        cells = values.shape[1]
        sums, squares = values.sum(axis=1).tolist(), np.multiply(values, values).sum(axis=1).tolist()
        for row, total, square in zip(values, sums, squares):
            checkpoint()
            mean = _divide(total * 1024, cells)
            variance = _divide(square * ((1 << 20) // cells) - mean * mean, 1 << 20)
            inverse = inverse_square_root(variance if variance >= 1 else self.guard)
            rescaled = multiply_by_quantized_multiplier(1024 * row - mean, *inverse).astype(np.int64)
            # LiteRT computes this product in 32 bits.
            weighted = (rescaled * self.coefficients + self.bias).astype(np.int32).astype(np.int64)
            row[...] = (weighted + 512 + (weighted >> 63)) >> 10  # halves away from zero
