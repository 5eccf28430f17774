"""Small batched integer matrix products with scalar loops: exact, so that results equal numpy's."""

from __future__ import annotations

import math

import numpy as np

from oplet import Context, Node, TensorType, decline
from oplet.kernels.arrays import Shape
from oplet.schema.options import BatchMatMulOptions
from oplet_compiled_ops.elementwise.fixed_point import scaled, scaling_table
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.memory import Array, flat
from oplet_compiled_ops.overriding import Bind, Thunk
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["matrix_starts", "plan_integer_products"]

#: The most products; for more, BLAS is faster.
_MOST = 1 << 14


#: Types of left matrices, right ones, outputs, and whether these are the sums themselves.
_TYPES = [
    ("i1", "i1", "i1", False),
    ("i2", "i2", "i2", False),
    ("i2", "i1", "i2", False),
    ("i1", "i1", "i4", True),
    ("i2", "i2", "i4", True),
]


@family(lambda: _TYPES)
def products_kernel(left: str, right: str, output: str, plain: bool) -> Kernel:
    """Build the kernel for batched products of integer matrices; the first three arguments are numba's names of their types
    ("i1").

    `plain` means that the outputs are the sums themselves, int32; otherwise these are rescaled, by one factor per column.
    """

    # fmt: off
    def products(  # type: ignore[no-untyped-def]
        left, right, out, lefts, rights, table, rows, columns, depth, row_step, left_step, column_step, right_step,
        left_zero, right_zero, zero, low, high,
    ):
        # fmt: on
        place = 0
        for batch in range(lefts.size):
            for row in range(rows):
                for column in range(columns):
                    total = np.int64(0)
                    x, y = lefts[batch] + row * row_step, rights[batch] + column * column_step
                    for _ in range(depth):
                        total += (np.int64(left[np.uint64(x)]) - left_zero) * (np.int64(right[np.uint64(y)]) - right_zero)
                        x += left_step
                        y += right_step
                    if not plain:
                        word = column * 6
                        total = scaled(
                            total, table[word + 1], table[word + 2], table[word + 3], table[word + 4], table[word + 5]
                        )
                        total = min(max(total + zero, low), high)
                    out[place] = total
                    place += 1

    arrays = ", ".join(f"{kind}[::1]" for kind in (left, right, output, "i8", "i8", "i8"))
    return Kernel(products, f"void({arrays}, {', '.join(['i8'] * 12)})")


def matrix_starts(shape: Shape, batches: Shape) -> Array:
    """Return at which element each batch's matrix begins, int64; matrices that broadcast over batches begin at the same one.

    Args:
        shape: the shape of an operand, (batches..., rows, columns).
        batches: the dimensions before the last two of the result.
    """
    given = (1,) * (len(batches) + 2 - len(shape)) + shape
    count = math.prod(given[:-2])
    positions = np.arange(count, dtype=np.int64) * (given[-1] * given[-2])
    return np.ascontiguousarray(np.broadcast_to(positions.reshape(given[:-2]), batches)).reshape(-1)


def plan_integer_products(context: Context, node: Node) -> Bind:
    """Plan a BATCH_MATMUL node with integer inputs; decline large products, for which numpy's kernel is faster."""
    left, right = node.inputs
    output, product = node.outputs[0], node.prepared
    if not left.size or not right.size or output.size * product.depth > _MOST:
        decline("there is nothing to compute, or so much that numpy's matrix products are faster.")
    plain = output.type == TensorType.INT32
    table, numbers = np.zeros(0, np.int64), (0, 0, 0, 0, 0)
    if not plain:
        requantizer = product.requantizer
        found = scaling_table(requantizer)
        if found is None or found.dtype != np.int64:
            decline("its sums, or their factors, are larger than it computes exactly.")
        table = found.reshape(-1)
        numbers = left.zero_point, right.zero_point, output.zero_point, requantizer.low, requantizer.high
    options = node.options(BatchMatMulOptions)
    *batches, rows, columns = output.shape
    depth = product.depth
    starts = [matrix_starts(tensor.shape, tuple(batches)) for tensor in (left, right)]
    steps = (1, rows) if options.adj_x else (depth, 1), (depth, 1) if options.adj_y else (1, columns)
    kernel = products_kernel(*(f"i{tensor.dtype.itemsize}" for tensor in (left, right, output)), plain)
    ready(kernel)

    def bind() -> Thunk:
        arrays = flat(left.data), flat(right.data), flat(output.data), *starts, table
        return thunk([Step(kernel, [(*arrays, rows, columns, depth, *steps[0], *steps[1], *numbers)])])

    return bind
