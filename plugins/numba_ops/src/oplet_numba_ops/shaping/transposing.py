"""TRANSPOSE: rows that stay whole are copied; where the last axis changes, squares of 16 x 16 numbers are transposed in registers.

Numbers are copied as bits, whatever their type. All strides and lengths are in numbers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic

from oplet_numba_ops.compiling.kernels import Kernel
from oplet_numba_ops.compiling.vectors import F32, I8, I32, I64, LANES, load_some, mask_below, store

cgutils: Any = numba_cgutils  # it has no types

__all__ = ["COPY_ROWS", "TURN_SQUARES", "copy_items", "turn_square"]

#: Floats are used for all four-byte numbers; nothing is computed with them.
_SCALARS = {1: I8, 4: F32}


def _copy_code(context: Any, size: Any, source: Any, target: Any, count: Any) -> Any:
    """Emit code that copies `count` numbers of `size` bytes from one address to another."""

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        source, target, count = arguments[1:]
        scalar = _SCALARS[size.literal_value]
        vectors = b.sdiv(count, I64(LANES))
        every = mask_below(b, I64(LANES))
        with cgutils.for_range(b, vectors, intp=I64) as part:
            at = b.mul(part.index, I64(LANES * size.literal_value))
            store(b, load_some(b, source, at, scalar, every), target, at, every)
        done = b.mul(vectors, I64(LANES))
        at = b.mul(done, I64(size.literal_value))
        rest = mask_below(b, b.sub(count, done))
        store(b, load_some(b, source, at, scalar, rest), target, at, rest)
        return ctx.get_dummy_value()

    return types.void(size, *[types.int64] * 3), generate


def _turn_code(
    context: Any, size: Any, source: Any, source_stride: Any, rows: Any, target: Any, target_stride: Any, columns: Any
) -> Any:
    """Emit code that writes the columns, up to 16, of up to 16 rows of numbers of `size` bytes as rows; addresses, and strides
    in bytes.
    """

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        source, source_stride, rows, target, target_stride, columns = arguments[1:]
        scalar = _SCALARS[size.literal_value]
        none = ir.Constant(ir.VectorType(ir.IntType(1), LANES), None)

        def mask(number: int, count: Any, lanes: Any) -> Any:
            return b.select(b.icmp_signed("<", I64(number), count), lanes, none)

        across, down = mask_below(b, columns), mask_below(b, rows)
        square = [load_some(b, source, b.mul(source_stride, I64(i)), scalar, mask(i, rows, across)) for i in range(LANES)]
        # Transposes 2 x 2 blocks recursively: the off-diagonal halves are exchanged, then those of each quarter, and so on.
        for half in (8, 4, 2, 1):
            first = [j if not j & half else LANES + j - half for j in range(LANES)]
            second = [j + half if not j & half else LANES + j for j in range(LANES)]
            for i in range(LANES):
                if not i & half:
                    pair = square[i], square[i + half]
                    for place, lanes in ((i, first), (i + half, second)):
                        square[place] = b.shuffle_vector(*pair, ir.Constant(ir.VectorType(I32, LANES), lanes))
        for i, row in enumerate(square):
            store(b, row, target, b.mul(target_stride, I64(i)), mask(i, columns, down))
        return ctx.get_dummy_value()

    return types.void(size, *[types.int64] * 6), generate


#: Called in kernels with all arguments but the first, the typing context.
copy_items: Any = intrinsic(prefer_literal=True)(_copy_code)
turn_square: Any = intrinsic(prefer_literal=True)(_turn_code)


def _copy_rows(size: int) -> Kernel:
    def rows(x, out, first, last, length, middle, inner, stride_0, stride_1, stride_2):  # type: ignore[no-untyped-def]
        a, b, c = first // (middle * inner), first // inner % middle, first % inner
        source, target = x.ctypes.data, out.ctypes.data
        for number in range(first, last):
            start = a * stride_0 + b * stride_1 + c * stride_2
            copy_items(size, source + start * size, target + number * length * size, length)
            c += 1
            if c == inner:
                c = 0
                b += 1
                if b == middle:
                    b = 0
                    a += 1

    return Kernel(rows, f"void(u{size}[::1], u{size}[::1], {', '.join(['i8'] * 8)})")


def _turn_squares(size: int) -> Kernel:
    def squares(  # type: ignore[no-untyped-def]
        x, out, first, last, strip, second, source_0, source_1, target_0, target_1, rows, row_stride, columns, column_stride
    ):
        strips = (columns + strip - 1) // strip
        for number in range(first, last):
            table, start = number // strips, number % strips * strip
            count = min(strip, columns - start)
            read = table // second * source_0 + table % second * source_1 + start
            write = table // second * target_0 + table % second * target_1 + start * column_stride
            if rows == 3 and column_stride == 3:  # three planes of an image become its channels
                planes, pixels = x[read:], out[write : write + 3 * count]
                red, green, blue = planes[:count], planes[row_stride:][:count], planes[2 * row_stride :][:count]
                for i in range(count):
                    pixels[3 * i] = red[i]
                    pixels[3 * i + 1] = green[i]
                    pixels[3 * i + 2] = blue[i]
                continue
            source, target = x.ctypes.data + read * size, out.ctypes.data + write * size
            for column in range(0, count, 16):
                for row in range(0, rows, 16):
                    turn_square(
                        size, source + (row * row_stride + column) * size, row_stride * size, min(16, rows - row),
                        target + (row + column * column_stride) * size, column_stride * size, min(16, count - column),
                    )  # fmt: skip

    return Kernel(squares, f"void(u{size}[::1], u{size}[::1], {', '.join(['i8'] * 12)})")


#: By the size of a number: copies the output rows `first` to `last`, each of `length` numbers, of (outer, middle, inner) rows;
#: arguments: the input's strides along these.
COPY_ROWS = {size: _copy_rows(size) for size in _SCALARS}
#: By the size of a number: transposes (outer, second) tables. Arguments: the tables' strides in input and output, the rows and
#: their stride in the input, the columns and their stride in the output; it computes the strips of columns `first` to `last` of all
#: tables together.
TURN_SQUARES = {size: _turn_squares(size) for size in _SCALARS}
