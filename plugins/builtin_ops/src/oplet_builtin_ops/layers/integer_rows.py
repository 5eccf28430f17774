"""Converts a layer's integer weight rows to the form that its matrix product multiplies.

Large weights are converted to floats piece by piece while they are multiplied: a float copy would take four times the memory, and
reading it would take longer than converting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType
from oplet.kernels.arrays import Array
from oplet.records import Record
from oplet_builtin_ops.layers.program import Call, convert
from oplet_builtin_ops.layers.rows import MANY_ROWS, Rows, plan_rows
from oplet_builtin_ops.layers.weights import transposed

__all__ = ["Streamed", "arranged", "plan_integer_rows"]

#: The most weights of which a float copy is kept.
_LARGE = 1 << 23
#: The weights that are converted at a time, and stay in the second-level cache as floats.
_PIECE = 1 << 17


class Streamed(Record):
    """Plan of a product with large integer weights that are converted to float block by block; same interface as `rows.Rows`.

    Attributes:
        count: the number of rows of the matrix.
        depth: the number of values of a row.
        filters: the number of rows of the weights.
        piece: scratch for a block of weights, converted to float.
        columns: scratch for the matrix in the type to compute in; None if it has that type.
        accumulators: scratch for the products; None if they are written to the output.
    """

    count: int
    depth: int
    filters: int
    piece: Tensor
    columns: Tensor | None
    accumulators: Tensor | None

    @property
    def longest(self) -> int:
        """The number of rows that are finished together: all."""
        return self.count

    def calls(self, source: Array, rows: Array, output: Array, finish: Callable[[slice, Array], list[Call]]) -> Iterator[Call]:
        """Yield the numpy calls that compute the product; `rows` are the integer weights, (filters, depth)."""
        if not self.count:
            return
        matrix = source.reshape(self.count, self.depth)
        if self.columns is not None:
            matrix = self.columns.data
            yield convert, (matrix, source.reshape(matrix.shape))
        block = output if self.accumulators is None else self.accumulators.data
        piece = self.piece.data
        for start in range(0, self.filters, len(piece)):
            part = piece[: self.filters - start]
            stop = start + len(part)
            yield convert, (part, rows[start:stop])
            yield np.matmul, (matrix, part.T, block[:, start:stop])
        yield from finish(slice(0, self.count), block)


def _is_large(weights: Tensor) -> bool:
    """Return whether integer weights are so large that they are converted to float block by block."""
    return weights.size > _LARGE


def _plan_streamed(
    context: Context, node: Node, count: int, weights: Tensor, *, source: TensorType, compute: TensorType, in_place: bool = False
) -> Streamed:
    """Plan the product of `count` rows with large weights of shape (filters, depth), converted block by block."""
    filters, depth = weights.shape
    return Streamed(
        count,
        depth,
        filters,
        context.add_temporary(node, (min(filters, max(1, _PIECE // depth)), depth), compute),
        None if source == compute else context.add_temporary(node, (count, depth), compute),
        None if in_place else context.add_temporary(node, (count, filters), compute),
    )


def plan_integer_rows(
    context: Context, node: Node, count: int, weights: Tensor, *, source: TensorType, compute: TensorType, streamed: bool = True
) -> Rows | Streamed:
    """Plan the product of `count` rows with integer weights of shape (filters, depth).

    Args:
        streamed: whether large weights may be converted piece by piece while they are multiplied.
    """
    in_place = node.outputs[0].type == TensorType.FLOAT32 and compute == TensorType.FLOAT32
    if streamed and _is_large(weights):
        return _plan_streamed(context, node, count, weights, source=source, compute=compute, in_place=in_place)
    return plan_rows(context, node, count, weights, source=source, compute=compute, in_place=in_place)


def arranged(node: Node, plan: Rows | Streamed, rows: Any, weights: Tensor, compute: TensorType) -> Array:
    """Return the weights in the layout that the plan multiplies; a float copy of constant weights is made once.

    Args:
        node: the node.
        plan: the plan of the product.
        rows: a function that returns the integer weights, one row per output channel.
        weights: the weights' tensor.
        compute: the float type to multiply in.
    """
    if isinstance(plan, Streamed):
        integers: Array = rows()
        return integers
    dtype: Any = np.float32 if compute == TensorType.FLOAT32 else np.float64
    many = plan.count >= MANY_ROWS

    def make() -> Array:
        return transposed(rows(), dtype) if many else np.asarray(rows().T, dtype, order="F")

    return node.cached(("matrix", dtype, many, node.inputs[0].type), [weights], make, shared=True)
