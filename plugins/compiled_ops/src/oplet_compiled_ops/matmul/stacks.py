"""Batched float matrix products: each right matrix is packed into panels and multiplied tile by tile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oplet_compiled_ops.convolution.tiles import tile
from oplet_compiled_ops.library import rounding
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import emitted
from oplet_compiled_ops.library.levels import LANES, tile_rows
from oplet_compiled_ops.shaping.transposing import copy_items, turn_square

__all__ = ["stack_kernel"]

load = emitted("atomics:load")


def _members() -> Iterator[tuple[int, int]]:
    for vectors, rows in tile_rows().items():
        yield from ((vectors, rows), (vectors, 1))


@family(_members)
def stack_kernel(vectors: int, rows: int) -> Kernel:
    """Build the kernel for batched float products, whose right matrices are packed in panels of `vectors` vectors of 16 columns.

    It computes a tile of `rows` rows of a panel at a time: the rows `first_row` to `last_row` of the products `first` to `last`
    (both exclusive). Of its other arguments, `lefts`, `rights` and `row_starts` are byte offsets of the matrices and of a left
    matrix's rows; `table` is as many zeros as `channels`, the biases that a tile expects; `panels` is scratch for a packed right
    matrix.
    """
    width = vectors * LANES
    clamped = rounding.CLAMPED
    endless = float("inf")

    # fmt: off
    def stack(  # type: ignore[no-untyped-def]
        left, right, output, lefts, rights, row_starts, runs, table, channels, panels,
        count, columns, depth, turned, first, last, first_row, last_row,
    ):
        # fmt: on
        laid_out = np.int64(-1)
        for batch in range(first, last):
            start = load(rights + 8 * batch)
            matrix = right + start
            weights = panels
            if turned == 0 and columns == width:
                weights = matrix
            elif start != laid_out:
                laid_out = start
                for channel in range(0, columns, width):
                    panel = panels + channel * depth * 4
                    wide = min(width, columns - channel)
                    if turned == 0:
                        for step in range(depth):
                            copy_items(4, matrix + (step * columns + channel) * 4, panel + step * width * 4, wide)
                    else:
                        for column in range(0, wide, 16):
                            for step in range(0, depth, 16):
                                turn_square(
                                    4, matrix + ((channel + column) * depth + step) * 4, depth * 4, min(16, wide - column),
                                    panel + (step * width + column) * 4, width * 4, min(16, depth - step),
                                )  # fmt: skip
            result = output + batch * count * columns * 4
            source = left + load(lefts + 8 * batch)
            for channel in range(0, columns, width):
                for row in range(first_row, last_row, rows):
                    tile(
                        vectors, rows, 0, 32, clamped,
                        source, row_starts, runs, 1, depth, weights + channel * depth * 4,
                        table, channels, channel, columns - channel, result + channel * 4, columns * 4,
                        row, last_row, -endless, endless, 0.0,
                    )  # fmt: skip

    return Kernel(stack, f"void({', '.join(['i8'] * 18)})")
