"""EMBEDDING_LOOKUP_SPARSE: weighted sums, or means, of rows of a table, for each row of a sparse matrix of row indices.

Numerics: tflite/kernels/embedding_lookup_sparse.cc
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands
from oplet.schema.enums import CombinerType
from oplet.schema.options import EmbeddingLookupSparseOptions

#: Bytes of scratch per value of a sum; a mask of row numbers: a checkpoint follows each time that its bits are 0.
_SCRATCH, _OFTEN = 8, 1023


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 5)
    (rows, indices, shape, weights, table), output = node.inputs, node.outputs[0]
    for tensor, rank in ((rows, 1), (indices, 2), (shape, 1), (weights, 1)):
        ensure(tensor.ndim == rank, f"{tensor} must have {rank} dimensions.")
        ensure_type(tensor, TensorType.FLOAT32 if tensor is weights else TensorType.INT32)
    count = indices.shape[0]
    ensure(rows.size == count, f"there are {count} indices in {indices} for {rows.size} row numbers in {rows}.")
    ensure(weights.size == count, f"there are {count} indices in {indices} for {weights.size} weights in {weights}.")
    ensure(table.ndim >= 2, f"the table {table} must have at least 2 dimensions.")
    ensure_type(table, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    ensure(
        shape.size == indices.shape[1] and shape.size > 0,
        f"the dense shape {shape} must have one value for each of the {indices.shape[1]} columns of {indices}.",
    )
    context.set_dynamic(output)


def bind(context: Context, node: Node) -> Thunk:
    rows, indices, shape, weights, table = node.inputs
    output, combiner = node.outputs[0], node.options(EmbeddingLookupSparseOptions).combiner

    def run() -> None:
        leading = read_ints(shape)[:-1]
        context.resize_tensor(output, (*leading, *table.shape[1:]))
        charge(_SCRATCH * rows.size * prod(table.shape[1:]))
        values = table.data.reshape(table.shape[0], prod(table.shape[1:]))
        sums = output.data.reshape(-1, values.shape[1]) if output.size else np.zeros((0, values.shape[1]), np.float32)
        sums.fill(0)
        numbers = rows.data
        bad = numbers[(numbers < 0) | (numbers >= len(values))]
        ensure(not bad.size, lambda: f"row {bad[:1]} of {table} is asked for, which has {len(values)}.")
        if len(numbers):
            _combine(sums, values, numbers, *_runs(indices.data, leading), weights.data, combiner)

    return run


def _runs(indices: Array, sizes: Sequence[int]) -> tuple[Array, list[int]]:
    """Return the start of each run of lookups for the same output row (bucket), and the buckets' numbers."""
    buckets = np.zeros(len(indices), np.int64)
    for column, size in enumerate(sizes):
        buckets *= size
        buckets += indices[:, column]
    starts = np.append(0, np.flatnonzero(buckets[1:] != buckets[:-1]) + 1)
    return starts, buckets[starts].tolist()


def _combine(
    sums: Array, values: Array, rows: Array, starts: Array, buckets: Sequence[int], weights: Array, combiner: CombinerType
) -> None:
    """Add the weighted rows of each run to its output row (bucket), and divide it by the combiner's norm.

    The norm is the sum of the weights for a mean, and the square root of the sum of their squares for sqrtn.

    Args:
        sums: the output, one row for each bucket; buckets outside of it are left out.
        values: the rows of the table.
        rows: the number of the row of each lookup.
        starts: the first lookup of each run.
        buckets: the bucket of each run.
        weights: the weight of each lookup.
        combiner: the norm.
    """
    with np.errstate(all="ignore"):
        totals = np.add.reduceat(values.take(rows, 0) * weights[:, None], starts)
        if combiner == CombinerType.MEAN:
            divisors = np.add.reduceat(weights, starts)
        else:
            divisors = np.sqrt(np.add.reduceat(weights * weights, starts))
        for number, (bucket, total, divisor) in enumerate(zip(buckets, totals, divisors)):
            if not number & _OFTEN:
                checkpoint()
            if 0 <= bucket < len(sums):
                sums[bucket] += total
                if combiner != CombinerType.SUM:
                    sums[bucket] /= divisor


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
