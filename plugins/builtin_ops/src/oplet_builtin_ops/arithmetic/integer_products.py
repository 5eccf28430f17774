"""Integer matrix products with a fixed-point scale per column, as lists of numpy calls on int64 arrays.

Values stay in int64, unclamped, so that what follows can add to them before it saturates.
Numerics: MatrixBatchVectorMultiplyAccumulate in tflite/kernels/internal/reference/portable_tensor_utils.cc
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from oplet import Node, Tensor
from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import multiply_by_quantized_multiplier
from oplet_builtin_ops.layers.program import Call, convert
from oplet_builtin_ops.layers.quantized_layer import exact_type
from oplet_builtin_ops.recurrent.recurrent_products import stacked

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["IntegerProduct", "rescale_calls", "shift_calls"]

_31 = np.array(31, np.int64)
_63 = np.array(63, np.int64)
_HALF = np.array(1 << 30, np.int64)


def shift_calls(values: Array, exponents: ArrayLike, spare: Array) -> list[Call]:
    """Return numpy calls that compute values / 2**exponents in place, to nearest, ties away from zero.

    Args:
        values: int64.
        exponents: integers of 0 or more that broadcast to the values.
        spare: scratch of the shape and type of the values.
    """
    amounts = np.asarray(exponents, np.int64)
    if not amounts.any():
        return []
    calls: list[Call] = [(np.right_shift, (values, _63, spare))]
    if not amounts.all():
        # Where nothing is shifted there is no half to round.
        calls.append((np.bitwise_and, (spare, np.where(amounts > 0, np.int64(-1), np.int64(0)), spare)))
    return [
        *calls,
        (np.add, (values, spare, values)),
        (np.add, (values, (np.int64(1) << amounts) >> 1, values)),
        (np.right_shift, (values, amounts, values)),
    ]


def _rescale_with_left_shift(values: Array, multipliers: Array, shifts: Array) -> None:
    values[...] = multiply_by_quantized_multiplier(values.astype(np.int32), multipliers, shifts)


def rescale_calls(values: Array, multipliers: ArrayLike, shifts: ArrayLike, spare: Array) -> list[Call]:
    """Return numpy calls that compute values * multipliers * 2**(shifts - 31) in place, rounded after each of the two steps.

    Args:
        values: int64 numbers within int32.
        multipliers: fixed-point factors that broadcast to the values, as do the shifts.
        shifts: above zero for a shift to the left.
        spare: scratch of the shape and type of the values.
    """
    multipliers, shifts = np.asarray(multipliers, np.int64), np.asarray(shifts, np.int64)
    if (shifts > 0).any():
        return [(_rescale_with_left_shift, (values, multipliers, shifts))]
    return [
        (np.multiply, (values, multipliers, values)),
        (np.add, (values, _HALF, values)),
        (np.right_shift, (values, _31, values)),
        *shift_calls(values, -shifts, spare),
    ]


class IntegerProduct:
    """Fully connected product of int8 activation rows and int8 weight matrices, plus bias, rescaled in fixed point.

    Args:
        weights: matrices of equal depth, one per gate.
        biases: int32, one per matrix; None for none.
        offset: the number that is added to each activation; its products with the weights are summed into the bias.
        scales: (multiplier, shift) of each matrix; its sums are scaled by multiplier * 2**(shift - 31).
        limit: the largest magnitude of the activations, which decides the float type that is exact for the sums.
    """

    def __init__(
        self,
        node: Node,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor] | None,
        offset: int,
        scales: Sequence[tuple[int, int]],
        limit: int = 128,
    ) -> None:
        rows = stacked(node, weights)
        sums = rows.sum(axis=1, dtype=np.int64)
        widest = float(np.absolute(rows, dtype=np.int16).sum(axis=1, dtype=np.int64).max(initial=0))
        dtype = np.dtype(exact_type(widest * limit).name.lower())
        self.transposed = stacked(node, weights, dtype).T
        self.bias = sums * offset
        if biases is not None:
            self.bias += stacked(node, biases)
        self.bias = self.bias.astype(np.int32).astype(np.int64)
        lengths = [tensor.shape[0] for tensor in weights]
        self.multipliers = np.repeat(np.array([multiplier for multiplier, _ in scales], np.int64), lengths)
        self.shifts = np.repeat(np.array([shift for _, shift in scales], np.int64), lengths)

    @property
    def columns(self) -> int:
        """The number of values in each row of the result: the gates' matrices side by side."""
        return len(self.bias)

    def calls(self, source: Array, target: Array) -> list[Call]:
        """Return numpy calls (function, arguments): `target`, int64 (count, columns), from `source`, integers (count, depth)."""
        if not target.size:
            return []
        dtype = self.transposed.dtype
        converted, products = np.empty(source.shape, dtype), np.empty(target.shape, dtype)
        return [
            (convert, (converted, source)),
            (np.matmul, (converted, self.transposed, products)),
            (convert, (target, products)),
            (np.add, (target, self.bias, target)),
            *rescale_calls(target, self.multipliers, self.shifts, np.empty_like(target)),
        ]
