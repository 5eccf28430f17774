"""TRANSPOSE: whole rows are copied; if the last axis changes, 16 x 16 blocks are transposed in registers.

Numbers are copied as bits, whatever their type. All strides and lengths are in numbers.
"""

from __future__ import annotations

from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.lazy import emitted

__all__ = ["COPY_ROWS", "TURN_SQUARES", "copy_items", "turn_square"]

_SIZES = 1, 4

copy_items = emitted("transposing:copy_items")
turn_square = emitted("transposing:turn_square")


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
COPY_ROWS = {size: _copy_rows(size) for size in _SIZES}
#: By the size of a number: transposes (outer, second) tables. Arguments: the tables' strides in input and output, the rows and
#: their stride in the input, the columns and their stride in the output; it computes the strips of columns `first` to `last` of all
#: tables together.
TURN_SQUARES = {size: _turn_squares(size) for size in _SIZES}
