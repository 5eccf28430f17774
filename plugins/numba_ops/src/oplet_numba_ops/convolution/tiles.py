"""Kernels of matrix products: a tile of windows times a panel of filters, in registers from the first product to the output.

Windows are read in place, as runs of consecutive values, without gathering patches (im2col); the output stage is applied before a
sum leaves its register.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic

from oplet_numba_ops.compiling.kernels import Kernel
from oplet_numba_ops.compiling.vectors import (
    F32,
    I32,
    I64,
    LANES,
    Finish,
    address,
    broadcast,
    dot_bytes,
    load,
    mask_below,
    multiply_add,
    store,
)

cgutils: Any = numba_cgutils  # it has no types

__all__ = ["product_kernel", "tile"]


def _tile_code(
    context: Any, vectors: Any, rows: Any, integer: Any, bits: Any, rounding: Any,
    source: Any, pixels: Any, runs: Any, run_count: Any, run_length: Any, weights: Any,
    table: Any, channels: Any, channel: Any, columns: Any, output: Any, row_bytes: Any,
    first: Any, last: Any, low: Any, high: Any, zero: Any,
) -> Any:  # fmt: skip
    """Emit code that sums and stores `rows` windows from `first` on, for `vectors` vectors of filters from `channel` on."""
    literals = (vectors, rows, integer, bits, rounding)
    signature = types.void(*literals, *[types.int64] * 14, *[types.float64] * 3)
    n_vectors, n_rows, is_integer, n_bits, how = (literal.literal_value for literal in literals)

    def emit(_: Any, b: ir.IRBuilder, __: Any, arguments: list[Any]) -> Any:
        (source, pixels, runs, run_count, run_length, weights, table, channels, channel, columns, output, row_bytes,
         first, last, low, high, zero) = arguments[5:]  # fmt: skip
        scalar = I32 if is_integer else F32
        finish = Finish(b, n_bits, how, table, channels, low, high, zero)
        starts = [b.add(channel, I64(v * LANES)) for v in range(n_vectors)]
        # Rows beyond the last window compute the last one again, and store the same values once more.
        numbers = []
        for m in range(n_rows):
            number = b.add(first, I64(m))
            numbers.append(b.select(b.icmp_signed("<", number, last), number, b.sub(last, I64(1))))
        bases = [b.add(source, b.load(address(b, pixels, b.mul(number, I64(8)), I64))) for number in numbers]
        begin = [finish.start(start, bool(is_integer)) for start in starts]
        sums = [[cgutils.alloca_once(b, value.type) for value in begin] for _ in bases]
        for row in sums:
            for slot, value in zip(row, begin):
                b.store(value, slot)
        panel = b.mul(run_length, I64(n_vectors * LANES * 4))
        with cgutils.for_range(b, run_count, intp=I64) as run:
            offset = b.load(address(b, runs, b.mul(run.index, I64(8)), I64))
            inputs = [b.add(base, offset) for base in bases]
            filters = b.add(weights, b.mul(run.index, panel))
            with cgutils.for_range(b, run_length, intp=I64) as step:
                where = b.mul(step.index, I64(n_vectors * LANES * 4))
                right = [load(b, filters, b.add(where, I64(v * LANES * 4)), scalar) for v in range(n_vectors)]
                at = b.mul(step.index, I64(4))
                for row, values in zip(sums, inputs):
                    left = broadcast(b, b.load(address(b, values, at, scalar), align=1 if is_integer else 4))
                    for slot, factor in zip(row, right):
                        total = b.load(slot)
                        b.store((dot_bytes if is_integer else multiply_add)(b, left, factor, total), slot)
        masks = [mask_below(b, b.sub(columns, I64(v * LANES))) for v in range(n_vectors)]
        size = n_bits // 8
        for row, number in zip(sums, numbers):
            base = b.add(output, b.mul(number, row_bytes))
            for v, (slot, start) in enumerate(zip(row, starts)):
                store(b, finish.outputs(b.load(slot), start), base, I64(v * LANES * size), masks[v])

    def generate(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit(ctx, builder, sig, args)
        return ctx.get_dummy_value()

    return signature, generate


#: Called in kernels with all arguments but the first, the typing context.
tile: Any = intrinsic(prefer_literal=True)(_tile_code)


@functools.cache
def product_kernel(vectors: int, rows: int, integer: bool, bits: int, rounding: int) -> Kernel:
    """The kernel of panels of `vectors` vectors and tiles of `rows` windows.

    It computes windows `first` to `last` and panels `first_panel` to `last_panel`.

    Args:
        vectors: the vectors of a panel.
        rows: the windows of a tile.
        integer: whether bytes are multiplied, four to a lane (AVX-512 VNNI), or floats.
        bits: the bits of an output.
        rounding: one of Finish's constants.
    """
    whole = int(integer)
    width = vectors * LANES
    size = bits // 8

    # fmt: off
    def product(  # type: ignore[no-untyped-def]
        source, pixels, runs, run_count, run_length, weights, table, channels, columns, output, row_bytes,
        first, last, first_panel, last_panel, block, low, high, zero,
    ):
        # fmt: on
        panel_bytes = run_count * run_length * width * 4
        for start in range(first, last, block):
            stop = min(last, start + block)
            for panel in range(first_panel, last_panel):
                channel = panel * width
                for row in range(start, stop, rows):
                    tile(
                        vectors, rows, whole, bits, rounding,
                        source, pixels, runs, run_count, run_length, weights + panel * panel_bytes,
                        table, channels, channel, columns - channel, output + channel * size, row_bytes,
                        row, stop, low, high, zero,
                    )  # fmt: skip

    return Kernel(product, f"void({', '.join(['i8'] * 16 + ['f8'] * 3)})")
