"""Depthwise convolution kernels: the last rows of input stay in a ring buffer; 16 channels by a few columns are computed at a
time.

The ring buffer holds the rows that a window covers, as float32 with padding; each row is copied into it once. Integers are
convolved as floats too, where that is exact.
"""

from __future__ import annotations

from typing import Any

from oplet_compiled_ops.compiling.kernels import Kernel, family
from oplet_compiled_ops.compiling.lazy import emitted
from oplet_compiled_ops.compiling.processor import LANES

__all__ = ["has_room", "taps_kernel"]

#: The most kernels that are compiled in a process, and for one model: each filter size needs its own, which takes seconds to
#: compile and megabytes to keep. Models have about ten; numpy serves the rest.
_MOST, _MOST_OF_A_MODEL = 64, 16
#: The most kernels in the disk cache; others are compiled in each process.
_MOST_ON_DISK = 128
#: In `Context.resources`: the kernels of a model.
_OF_A_MODEL = "oplet_compiled_ops", "taps"
_of_this_process: set[tuple[Any, ...]] = set()


def has_room(resources: dict[Any, Any], arguments: tuple[Any, ...]) -> bool:
    """Return whether one more depthwise kernel may be compiled, as their number is limited, for a model and for the process.

    If so, or if the kernel with these arguments is counted already, it counts as used by the model.

    Args:
        resources: the model's `Context.resources`.
        arguments: the arguments of `taps_kernel`.
    """
    of_model: set[tuple[Any, ...]] = resources.setdefault(_OF_A_MODEL, set())
    for kernels, most in ((of_model, _MOST_OF_A_MODEL), (_of_this_process, _MOST)):
        if arguments not in kernels and len(kernels) >= most:
            return False
    of_model.add(arguments)
    _of_this_process.add(arguments)
    return True


_outputs = emitted("taps:outputs")
_pixels = emitted("taps:pixels")


@family
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
) -> Kernel:
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
        rounding: one of `emitting.rounding`'s constants.
    """

    number_bits, family = 8 * int(source_type[1:]), "fiu".index(source_type[0])

    # fmt: off
    def depthwise(  # type: ignore[no-untyped-def]
        source, ring, lines, weights, table, channels, columns, multiplier, output, first, last,
        first_vector, last_vector, rows, out_rows, out_columns, top, left, stride_h, dilation_h, direct, pad, low, high, zero,
    ):
        # fmt: on
        vectors = (columns + LANES - 1) // LANES
        pixel = vectors * LANES
        slots = ring.shape[0] - 1
        length = source.shape[1]
        depth = columns // multiplier
        span = (height - 1) * dilation_h + 1
        if direct:
            pass  # the ring is a row of padding
        elif multiplier > 1 and pixel != columns:
            ring[:] = pad  # also in channels that do not exist, as garbage there might be denormal and slow to compute with
        else:
            inside = length // depth * pixel
            for slot in range(slots):
                ring[slot, : left * pixel] = pad
                ring[slot, left * pixel + inside :] = pad
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
                            _pixels(
                                number_bits, family, values.ctypes.data, line[left * pixel :].ctypes.data, length // depth, depth
                            )
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
                height, width, stride, dilation, before, room, pixels, bits, rounding,
                lines.ctypes.data, vectors, first_vector, last_vector, weights, table, channels, columns,
                output + number * out_columns * columns * (bits // 8), out_columns, low, high, zero,
            )  # fmt: skip

    signature = f"void({source_type}[:,::1], f4[:,::1], i8[::1], {', '.join(['i8'] * 18)}, f4, f8, f8, f8)"
    return Kernel(depthwise, signature, most_on_disk=_MOST_ON_DISK)
