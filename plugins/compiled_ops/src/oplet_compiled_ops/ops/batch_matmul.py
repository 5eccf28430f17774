"""BATCH_MATMUL, compiled: float32 with right matrices that are not large, and small integer products."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, Tensor, TensorType, charge, decline
from oplet.kernels.arrays import Shape
from oplet.schema.options import BatchMatMulOptions
from oplet_builtin_ops.ops.batch_matmul import REGISTRATION as BUILTIN
from oplet_compiled_ops.library.levels import LANES, tile_rows
from oplet_compiled_ops.library.memory import Array, address, aligned
from oplet_compiled_ops.matmul.integer_products import matrix_starts, plan_integer_products
from oplet_compiled_ops.matmul.stacks import stack_kernel
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.splitting import Range, cut, each, slots
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most numbers of a right matrix: larger ones leave the cache, and BLAS is as fast.
_LARGEST = 1 << 17
#: The least multiply-adds of a part.
_WORTH = 100_000


def _starts(tensor: Tensor, batches: Shape) -> Array:
    """Return the byte offset at which each batch's float32 matrix begins; a matrix that broadcasts over batches is at the same
    one in all.
    """
    return matrix_starts(tensor.shape, batches) * 4


def plan(context: Context, node: Node) -> Bind:
    left, right = node.inputs
    output = node.outputs[0]
    options = node.options(BatchMatMulOptions)
    if left.type != TensorType.FLOAT32:
        return plan_integer_products(context, node)
    if right.type != TensorType.FLOAT32:
        decline("its right matrices are integers.")
    if not left.size or not right.size or options.adj_x:
        decline("there is nothing to compute, or its left matrices are transposed.")
    *batches, rows, columns = output.shape
    depth = left.shape[-1]
    if depth * columns > _LARGEST:
        decline("BLAS is as fast for large matrices.")
    if right.size == depth * columns:  # all rows are multiplied by one matrix
        rows, batches = output.size // columns, []
        first, second = np.zeros(1, np.int64), np.zeros(1, np.int64)
    else:
        first, second = _starts(left, tuple(batches)), _starts(right, tuple(batches))
    count = len(first)
    tiles = tile_rows()
    vectors = min(1 if columns <= LANES else 2 if columns <= 2 * LANES else 4, max(tiles))
    tile = tiles[vectors] if rows > 1 else 1
    kernel = stack_kernel(vectors, tile)
    ready(kernel)
    width = vectors * LANES
    panels = -(-columns // width)
    worth = count * rows * columns * depth // _WORTH
    by_rows = count == 1
    ranges = cut(rows if by_rows else count, worth, context.num_threads, tile if by_rows else 1)
    size = panels * width * depth
    charge(4 * size * slots(ranges) + 8 * (rows + 2 * count))
    row_starts = np.arange(rows, dtype=np.int64) * (4 * depth)
    none, bias = np.zeros(1, np.int64), aligned((panels * width,), np.float32)

    def bind() -> Thunk:
        x, y, z = left.data, right.data, output.data
        scratch = [aligned((size,), np.float32) for _ in range(slots(ranges))]
        arrays = x, y, z, first, second, row_starts, none, bias
        before = *map(address, arrays), bias.size
        shape = rows, columns, depth, int(options.adj_y)

        def part(some: Range, slot: int) -> tuple[int, ...]:
            some_rows, some_batches = (some, (0, 1)) if by_rows else ((0, rows), some)
            return *before, address(scratch[slot]), *shape, *some_batches, *some_rows

        return thunk([Step(kernel, each(ranges, part))], context.num_threads, *arrays, *scratch)

    return bind


_TYPES = [TensorType.FLOAT32, TensorType.INT8, TensorType.INT16]

REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[_TYPES, _TYPES]))
