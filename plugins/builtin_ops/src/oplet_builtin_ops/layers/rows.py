"""Product of a matrix with weights, a strip of rows at a time.

A strip stays in the cache from the conversion of its rows to the last pass over its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType
from oplet.kernels.arrays import Array
from oplet.records import Record
from oplet_builtin_ops.layers.program import Call, convert

__all__ = ["MANY_ROWS", "Rows", "even_slices", "plan_rows", "strip_size"]

#: From so many rows on, a copy of the weights in the order of BLAS is worth its time.
MANY_ROWS = 16


class Rows(Record):
    """Plan of the product of a matrix with weights, made by `prepare` for `bind`.

    Attributes:
        count: the number of rows of the matrix.
        depth: the number of values of a row.
        filters: the number of outputs per row.
        strips: the blocks of consecutive rows (strips) that are computed together.
        columns: scratch for the rows of a strip in the type to compute in; None if they have that type.
        accumulators: scratch for the products of a strip; None if they are written to the output.
    """

    count: int
    depth: int
    filters: int
    strips: Sequence[slice]
    columns: Tensor | None
    accumulators: Tensor | None

    @property
    def longest(self) -> int:
        """The number of rows of the largest strip."""
        return self.strips[0].stop if self.strips else 0

    def calls(self, source: Array, matrix: Array, output: Array, finish: Callable[[slice, Array], list[Call]]) -> Iterator[Call]:
        """Yield the numpy calls that compute the product.

        Args:
            source: the matrix.
            matrix: the weights, (depth, filters), of the type to compute in.
            output: (count, filters); receives the products if there are no accumulators.
            finish: returns the calls that turn a strip's products into its outputs: bias, activation, requantization.
        """
        for strip in self.strips:
            count = strip.stop - strip.start
            rows = source.reshape(self.count, self.depth)[strip]
            if self.columns is not None:
                columns = self.columns.data.reshape(-1)[: rows.size].reshape(rows.shape)
                yield convert, (columns, rows)
                rows = columns
            block = output[strip]
            if self.accumulators is not None:
                block = self.accumulators.data.reshape(-1)[: count * self.filters].reshape(count, self.filters)
            yield np.matmul, (rows, matrix, block)
            yield from finish(strip, block)


def plan_rows(
    context: Context, node: Node, count: int, weights: Tensor, *, source: TensorType, compute: TensorType, in_place: bool
) -> Rows:
    """Plan the product of `count` rows with weights of shape (filters, depth), and request scratch memory.

    Args:
        context: the node's context.
        node: the node.
        count: the number of rows.
        weights: the weights' tensor.
        source: the rows' type.
        compute: the float type to multiply in.
        in_place: whether the products are written into the output itself.
    """
    filters, depth = weights.shape
    strips = even_slices(count, strip_size(depth, filters, source != compute))
    longest = strips[0].stop if strips else 0
    return Rows(
        count,
        depth,
        filters,
        strips,
        context.add_temporary(node, (longest, depth), compute) if source != compute else None,
        None if in_place else context.add_temporary(node, (longest, filters), compute),
    )


def strip_size(depth: int, filters: int, gathered: bool) -> int:
    """Return how many rows (or convolution windows) to multiply at a time, so that operands stay in the cache.

    Outputs and gathered patches should stay in the second-level cache until bias and activation are applied, and OpenBLAS has a
    faster kernel for products below a million multiply-adds; but large weights should not be read too often.
    """
    size = 65536 // max(filters, 1)
    if gathered:
        size = min(size, 196608 // max(depth, 1))
    small = 1_000_000 // max(depth * filters, 1)
    if small >= 96:
        size = min(size, small)
    return max(size, min(128, (1 << 24) // max(depth, 1)), 1)


class Slices(Sequence[slice]):
    """A lazy sequence of consecutive slices over a length, all of one size but the last."""

    def __init__(self, length: int, size: int) -> None:
        self._length, self._starts = length, range(0, length, max(1, size))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: Any) -> Any:
        start = self._starts[number]
        return slice(start, min(start + self._starts.step, self._length))


def even_slices(length: int, size: int) -> Sequence[slice]:
    """Divide a length into slices of about equal size, at most `size`, multiples of 16 if long; the first is the longest."""
    if not length:
        return []
    pieces = -(-length // size)
    even = -(-length // pieces)
    if even > 16:
        even = min(size, -(-even // 16) * 16)
    return Slices(length, even)
