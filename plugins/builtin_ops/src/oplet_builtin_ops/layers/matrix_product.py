"""Batched matrix products whose leading dimensions broadcast."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from oplet import Tensor, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_builtin_ops.arithmetic.requantize import Requantizer
from oplet_builtin_ops.layers.program import Call

__all__ = ["MatrixProduct", "plan_product"]


@dataclass(frozen=True)
class MatrixProduct:
    """Plan of a batched matrix product (BATCH_MATMUL).

    Attributes:
        adj_x: whether the left matrices are transposed first.
        adj_y: whether the right matrices are transposed first.
        shape: the shape of the result.
        depth: the number of products that are summed for a value of the result.
        single: whether there is only one right matrix, so that all left rows can be multiplied at once.
        requantizer: the requantization of the sums; None if they are the result, as those of floats are.
    """

    adj_x: bool
    adj_y: bool
    shape: Shape
    depth: int
    single: bool
    requantizer: Requantizer | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> int:
        """The number of columns of the result."""
        return self.shape[-1]

    def calls(self, left: Array, right: Array, target: Array) -> list[Call]:
        """Return numpy calls that multiply arrays of one float type."""
        if not target.size:
            return []
        if not self.depth:
            return [(target.fill, (0,))]
        # BLAS reads transposed matrices without a copy.
        x = left.swapaxes(-1, -2) if self.adj_x else left
        y = right.swapaxes(-1, -2) if self.adj_y else right
        if self.single:
            y = y.reshape(y.shape[-2:])
            if not self.adj_x:
                x, target = x.reshape(-1, self.depth), target.reshape(-1, self.columns)
        return [(np.matmul, (x, y, target))]


def plan_product(left: Tensor, right: Tensor, adj_x: bool, adj_y: bool) -> MatrixProduct:
    """Plan the batched matrix product of two tensors.

    Raises:
        EnsureError: the matrices or the dimensions before them do not fit.
    """
    rank = max(left.ndim, right.ndim)
    first, second = ((1,) * (rank - tensor.ndim) + tensor.shape for tensor in (left, right))
    for m, n in zip(first[:-2], second[:-2]):
        ensure(m == n or 1 in (m, n), lambda: f"the dimensions before the matrices do not broadcast: {left} with {right}.")
    rows, depth = first[:-3:-1] if adj_x else first[-2:]
    inner, columns = second[:-3:-1] if adj_y else second[-2:]
    ensure(
        depth == inner,
        lambda: (
            f"rows of {depth} values cannot be multiplied with columns of {inner}: {left} with {right}, "
            f"adj_x {adj_x}, adj_y {adj_y}."
        ),
    )
    batches = tuple(n if m == 1 else m for m, n in zip(first[:-2], second[:-2]))
    return MatrixProduct(adj_x, adj_y, (*batches, rows, columns), depth, all(n == 1 for n in second[:-2]))
