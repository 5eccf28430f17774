"""Depthwise convolution kernels: the last rows of input stay in a ring buffer; 16 channels by a few columns are computed at a
time.

The ring buffer holds the rows that a window covers, as float32 with padding; each row is copied into it once. Integers are
convolved as floats too, where that is exact. Filters of the sizes in `filter_sizes` have kernels of their own, all of whose taps are
unrolled; `any_taps_kernel` serves the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from oplet_compiled_ops.convolution.filter_sizes import FILTER_SIZES
from oplet_compiled_ops.library import rounding as roundings
from oplet_compiled_ops.library.kernels import built_with
from oplet_compiled_ops.library.lazy import emitted, inlined
from oplet_compiled_ops.library.levels import LANES, windows_together

__all__ = ["any_taps_kernel", "taps_kernel"]

_outputs = emitted("taps:outputs")
_any_outputs = emitted("taps:any_outputs")
_pixels = emitted("taps:pixels")
_inlined: Any = inlined(error_model="numpy", boundscheck=False)


@_inlined
def _clear(ring, inside, pixel, columns, left, multiplier, direct, pad):  # type: ignore[no-untyped-def]
    """Write the padding to the left and right of `inside` values into each row of the ring buffer."""
    if direct:
        return  # the ring is a row of padding
    if multiplier > 1 and pixel != columns:
        ring[:] = pad  # also in channels that do not exist, as garbage there might be denormal and slow to compute with
        return
    for slot in range(ring.shape[0] - 1):
        ring[slot, : left * pixel] = pad
        ring[slot, left * pixel + inside :] = pad


@functools.cache
def _reading(source_type: str) -> Any:
    """Build the function that copies the rows of a window that are new into the ring buffer, and writes the addresses of the
    window's rows into `lines`, or those of the map's own rows if they are read directly.
    """
    number_bits, family_of = 8 * int(source_type[1:]), "fiu".index(source_type[0])

    # fmt: off
    @_inlined
    def read(  # type: ignore[no-untyped-def]
        source, ring, lines, height, begin, next_row, image, rows, top, left, pixel, depth, multiplier, dilation_h, direct, pad,
    ):
        # fmt: on
        slots = ring.shape[0] - 1
        length = source.shape[1]
        end = begin + (height - 1) * dilation_h + 1
        if not direct:
            for row in range(max(next_row, begin), end):
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
                        _pixels(
                            number_bits, family_of, values.ctypes.data, line[left * pixel :].ctypes.data, length // depth, depth
                        )
                    else:
                        for x in range(length // depth):
                            start = (left + x) * pixel
                            for c in range(depth):
                                for q in range(multiplier):
                                    line[start + c * multiplier + q] = values[x * depth + c]
        for i in range(height):
            row = begin + i * dilation_h
            if not direct:
                lines[i] = ring[row % slots].ctypes.data
            elif row < top or row >= top + rows:
                lines[i] = ring[slots].ctypes.data
            else:
                lines[i] = source[image * rows + row - top].ctypes.data
        return end

    return read


def _fixed() -> Iterator[tuple[Any, ...]]:
    for source_type, height, width, stride, dilation, before, room, bits, rounding in FILTER_SIZES:
        yield source_type, height, width, stride, dilation, before, room, windows_together(), bits, rounding


@built_with(_fixed)
def taps_kernel(
    source_type: str,
    height: int,
    width: int,
    stride: int,
    dilation: int,
    before: int,
    room: int,
    pixels: int,
    bits: int,
    rounding: int,
) -> Callable[..., Any]:
    """Build the depthwise convolution kernel for one filter size, all of whose taps are unrolled.

    Args:
        source_type: numba's name of the input's type.
        height: the filter's height in taps.
        width: the filter's width in taps.
        stride: the stride of windows along the width.
        dilation: the dilation along the width.
        before: columns of padding before a row that are not in memory.
        room: columns in memory that the last window covers; the filter's width if none is missing.
        pixels: the windows whose sums are kept in registers at a time.
        bits: the bits of an output: 32 for floats, 8 or 16 for integers.
        rounding: one of `library.rounding`'s constants.
    """
    read, size = _reading(source_type), bits // 8

    # fmt: off
    def depthwise(  # type: ignore[no-untyped-def]
        source, ring, lines, weights, table, channels, columns, multiplier, output, first, last,
        first_vector, last_vector, rows, out_rows, out_columns, top, left, stride_h, dilation_h, direct, pad, low, high, zero,
    ):
        vectors = (columns + LANES - 1) // LANES
        pixel, depth = vectors * LANES, columns // multiplier
        _clear(ring, source.shape[1] // depth * pixel, pixel, columns, left, multiplier, direct, pad)
        next_row, image = 0, -1
        for number in range(first, last):
            if number // out_rows != image:
                image, next_row = number // out_rows, 0
            next_row = read(
                source, ring, lines, height, number % out_rows * stride_h, next_row, image, rows, top, left, pixel, depth,
                multiplier, dilation_h, direct, pad,
            )
            _outputs(
                height, width, stride, dilation, before, room, pixels, bits, rounding,
                lines.ctypes.data, vectors, first_vector, last_vector, weights, table, channels, columns,
                output + number * out_columns * columns * size, out_columns, low, high, zero,
            )
    # fmt: on

    return depthwise


def _any() -> Iterator[tuple[str, int, int]]:
    yield "f4", 32, roundings.CLAMPED
    integers = (roundings.NEAREST, roundings.FLOOR, roundings.AWAY)
    yield from (("i1", 8, roundings.NEAREST_ABOVE), ("u1", 8, roundings.NEAREST_ABOVE))
    for (code, bits), rounding in product((("i1", 8), ("u1", 8), ("i2", 16)), integers):
        yield code, bits, rounding


@built_with(_any)
def any_taps_kernel(source_type: str, bits: int, rounding: int) -> Callable[..., Any]:
    """Build the depthwise convolution kernel for filters of any size, which loops over taps.

    Its arguments are those of `taps_kernel`'s kernels, and the filter's height, its width, the stride and the dilation along the
    width; rows are never read directly, but always from the ring buffer, padding included.
    """
    read, size = _reading(source_type), bits // 8

    # fmt: off
    def depthwise_any(  # type: ignore[no-untyped-def]
        source, ring, lines, weights, table, channels, columns, multiplier, output, first, last,
        first_vector, last_vector, rows, out_rows, out_columns, top, left, stride_h, dilation_h, direct, pad, low, high, zero,
        height, width, stride, dilation,
    ):
        vectors = (columns + LANES - 1) // LANES
        pixel, depth = vectors * LANES, columns // multiplier
        _clear(ring, source.shape[1] // depth * pixel, pixel, columns, left, multiplier, 0, pad)
        next_row, image = 0, -1
        for number in range(first, last):
            if number // out_rows != image:
                image, next_row = number // out_rows, 0
            next_row = read(
                source, ring, lines, height, number % out_rows * stride_h, next_row, image, rows, top, left, pixel, depth,
                multiplier, dilation_h, 0, pad,
            )
            _any_outputs(
                bits, rounding, lines.ctypes.data, vectors, first_vector, last_vector, weights, table, channels, columns,
                output + number * out_columns * columns * size, out_columns, height, width, stride, dilation, low, high, zero,
            )
    # fmt: on

    return depthwise_any
