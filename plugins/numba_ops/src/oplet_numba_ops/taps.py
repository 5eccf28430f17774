"""Depthwise convolution: rows of outputs, sixteen channels and a few windows at a time, from rows of the input in a ring.

The ring holds the rows that a window sees, as float32, with the padding around them; a row is copied into it once. Integers are
convolved as floats too, where that is exact.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from oplet_numba_ops.kernels import Kernel
from oplet_numba_ops.vectors import F32, I64, LANES, Finish, address, load, mask_below, multiply_add, store

__all__ = ["taps_kernel"]


@intrinsic(prefer_literal=True)
def _outputs(
    context: Any, height: Any, width: Any, stride: Any, dilation: Any, pixels: Any, bits: Any, rounding: Any,
    rows: Any, vectors: Any, weights: Any, table: Any, channels: Any, columns: Any, output: Any, count: Any,
    low: Any, high: Any, zero: Any,
) -> Any:  # fmt: skip
    """One row of `count` outputs from the `height` rows of the ring whose addresses are at `rows`."""
    literals = (height, width, stride, dilation, pixels, bits, rounding)
    signature = types.void(*literals, *[types.int64] * 8, *[types.float64] * 3)
    taps_y, taps_x, step, spread, together, n_bits, how = (literal.literal_value for literal in literals)

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        rows, vectors, weights, table, channels, columns, output, count, low, high, zero = arguments[7:]
        finish = Finish(b, n_bits, how, table, channels, low, high, zero)
        lines = [b.load(address(b, rows, I64(8 * i), I64)) for i in range(taps_y)]
        pixel = b.mul(vectors, I64(LANES * 4))
        size = n_bits // 8
        out_pixel = b.mul(columns, I64(size))
        with cgutils.for_range(b, vectors, intp=I64) as part:
            channel = b.mul(part.index, I64(LANES))
            at = b.mul(channel, I64(4))
            mask = mask_below(b, b.sub(columns, channel))
            factors = []
            for tap in range(taps_y * taps_x):
                factors.append(load(b, weights, b.add(at, b.mul(pixel, I64(tap))), F32))
            begin = finish.start(channel, False)
            target = b.add(output, b.mul(channel, I64(size)))

            def some(first: Any, many: int) -> None:
                sums = [begin] * many
                left = b.add(at, b.mul(b.mul(first, I64(step)), pixel))
                for i in range(taps_y):
                    seen: dict[int, Any] = {}
                    for p in range(many):
                        for j in range(taps_x):
                            column = p * step + j * spread
                            if column not in seen:
                                seen[column] = load(b, lines[i], b.add(left, b.mul(pixel, I64(column))), F32)
                            sums[p] = multiply_add(b, seen[column], factors[i * taps_x + j], sums[p])
                for p, total in enumerate(sums):
                    where = b.mul(b.add(first, I64(p)), out_pixel)
                    store(b, finish.outputs(total, channel), target, where, mask)

            blocks = b.sdiv(count, I64(together))
            with cgutils.for_range(b, blocks, intp=I64) as block:
                some(b.mul(block.index, I64(together)), together)
            if together > 1:
                done = b.mul(blocks, I64(together))
                with cgutils.for_range(b, b.sub(count, done), intp=I64) as single:
                    some(b.add(done, single.index), 1)
        return ctx.get_dummy_value()

    return signature, generate


@functools.lru_cache(maxsize=None)
def taps_kernel(
    source_type: str, height: int, width: int, stride: int, dilation: int, pixels: int, bits: int, rounding: int
) -> Kernel:
    """The kernel of one filter size.

    Args:
        source_type: numba's name of the input's numbers.
        height: taps of the filter; so `width`.
        stride: between windows, along the width; so `dilation`.
        pixels: how many windows are summed together.
        bits: of an output, and how it is rounded; see `Finish`.
    """

    def depthwise(
        source, ring, lines, weights, table, channels, columns, multiplier, output, first, last,
        rows, out_rows, out_columns, top, left, stride_h, dilation_h, direct, pad, low, high, zero,
    ):  # type: ignore[no-untyped-def]  # fmt: skip
        vectors = (columns + LANES - 1) // LANES
        pixel = vectors * LANES
        slots = ring.shape[0] - 1
        length = source.shape[1]
        depth = columns // multiplier
        ring[:] = pad
        span = (height - 1) * dilation_h + 1
        next_row = 0
        image = -1
        for number in range(first, last):
            y = number % out_rows
            if number // out_rows != image:
                image = number // out_rows
                next_row = 0
            begin = y * stride_h
            if not direct:
                for row in range(max(next_row, begin), begin + span):
                    line = ring[row % slots]
                    if row < top or row >= top + rows:
                        line[:] = pad
                    else:
                        values = source[image * rows + row - top]
                        if pixel == depth:
                            inner = line[left * pixel : left * pixel + length]
                            for k in range(length):
                                inner[k] = values[k]
                        elif multiplier == 1:
                            for x in range(length // depth):
                                inner = line[(left + x) * pixel : (left + x) * pixel + depth]
                                taken = values[x * depth : (x + 1) * depth]
                                for c in range(depth):
                                    inner[c] = taken[c]
                        else:
                            for x in range(length // depth):
                                start = (left + x) * pixel
                                for c in range(depth):
                                    for q in range(multiplier):
                                        line[start + c * multiplier + q] = values[x * depth + c]
                next_row = begin + span
            for i in range(height):
                row = begin + i * dilation_h
                if not direct:
                    lines[i] = ring[row % slots].ctypes.data
                elif row < top or row >= top + rows:
                    lines[i] = ring[slots].ctypes.data
                else:
                    lines[i] = source[image * rows + row - top].ctypes.data
            _outputs(
                height, width, stride, dilation, pixels, bits, rounding,
                lines.ctypes.data, vectors, weights, table, channels, columns,
                output + number * out_columns * columns * (bits // 8), out_columns, low, high, zero,
            )  # fmt: skip

    signature = f"void({source_type}[:,::1], f4[:,::1], i8[::1], {', '.join(['i8'] * 16)}, f4, f8, f8, f8)"
    return Kernel(depthwise, signature)
