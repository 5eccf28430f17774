"""Convolutions of +1 and -1 in words of bits: the bits in which windows and filters differ are counted, sixteen filters at a time.

Sums are doubled and count from above, as in `oplet_larq_ops.outputs`, which also defines what becomes of them.
"""

from __future__ import annotations

import numpy as np

from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import emitted
from oplet_compiled_ops.library.levels import LANES
from oplet_compiled_ops.library.memory import Array

__all__ = ["BITS", "FLOATS", "INTEGERS", "KINDS", "binary_kernel", "blocked"]

differing = emitted("bits:differing")

#: What goes out: numba's type of it.
FLOATS, INTEGERS, BITS = "f4", "i1", "u4"
KINDS = (FLOATS, INTEGERS, BITS)
#: Just below a half (see `oplet_larq_ops.outputs`).
_HALF = np.nextafter(np.float32(0.5), np.float32(0))
_LEAST, _MOST = np.float32(-128), np.float32(127)


def blocked(filters: Array, groups: int) -> Array:
    """Return binary filters, packed as 32-bit words, in the kernel's order: (groups, blocks of 16 filters, words, 16), uint32.

    Args:
        filters: int32 words, of shape (filters, ...); the last block of a group is padded with zeros.
        groups: the number of groups of consecutive filters (grouped convolution).
    """
    rows = filters.reshape(groups, len(filters) // groups, -1)
    blocks = -(-rows.shape[1] // LANES)
    whole = np.zeros((groups, blocks * LANES, rows.shape[2]), np.int32)
    whole[:, : rows.shape[1]] = rows
    turned = whole.reshape(groups, blocks, LANES, -1).transpose(0, 1, 3, 2)
    return np.ascontiguousarray(turned).view(np.uint32)


@family(lambda: [(kind,) for kind in KINDS])
def binary_kernel(kind: str) -> Kernel:
    """Build the kernel for binary convolutions with this type of output.

    Its arguments are the map's words, the filters' (`blocked`), a row of a window's words of zeros, a line's factors and offsets
    (empty for bits), doubled thresholds (empty but for bits), the output, counters of each slot (inside, outside), the numbers that
    are read below, and the windows and the slot of this part.
    """

    # fmt: off
    def binary(  # type: ignore[no-untyped-def]
        source, filters, zeros, factors, offsets, thresholds, out, counters, numbers, first, last, slot,
    ):
        # fmt: on
        height, width, words, rows, columns = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
        down, across, row_stride, column_stride = numbers[5], numbers[6], numbers[7], numbers[8]
        row_dilation, column_dilation, above, beside = numbers[9], numbers[10], numbers[11], numbers[12]
        groups, depth, each, channels = numbers[13], numbers[14], numbers[15], numbers[16]
        # 0: taps outside are +1; 1: they count as nothing; 2: the same, by a correction of the floats
        zero_padding, low, high = numbers[17], numbers[18], numbers[19]
        blocks = (each + LANES - 1) // LANES
        length = down * across * depth
        inside, outside = counters[slot, 0], counters[slot, 1]
        source_at, filters_at, zeros_at = source.ctypes.data, filters.ctypes.data, zeros.ctypes.data
        inside_at, outside_at = inside.ctypes.data, outside.ctypes.data
        for window in range(first, last):
            picture, place = window // (rows * columns), window % (rows * columns)
            top = (place // columns) * row_stride - above
            left = (place % columns) * column_stride - beside
            for i in range(inside.size):
                inside[i] = 0
                outside[i] = 0
            missed = 0
            for i in range(down):
                row = top + i * row_dilation
                is_row = row >= 0 and row < height
                j = 0
                while j < across:
                    column = left + j * column_dilation
                    is_inside = is_row and column >= 0 and column < width
                    taps = 1
                    if column_dilation == 1 and groups == 1:  # neighbours lie side by side
                        if not is_row:
                            taps = across - j
                        elif is_inside:
                            taps = min(across - j, width - column)
                        elif column < 0:
                            taps = min(across - j, -column)
                        else:
                            taps = across - j
                    at = filters_at + (i * across + j) * depth * (4 * LANES)
                    if is_inside:
                        where = source_at + ((picture * height + row) * width + column) * words * 4
                        for group in range(groups):
                            for block in range(blocks):
                                number = group * blocks + block
                                differing(
                                    where + group * depth * 4, taps * depth, at + number * length * (4 * LANES),
                                    inside_at + number * (4 * LANES),
                                )
                    else:
                        missed += taps
                        if zero_padding != 1:
                            for number in range(groups * blocks):
                                differing(
                                    zeros_at, taps * depth, at + number * length * (4 * LANES),
                                    outside_at + number * (4 * LANES),
                                )
                    j += taps
            start = channels * missed if zero_padding == 1 else 0
            if kind == BITS:
                for word in range((groups * each + 31) // 32):
                    bits = np.uint32(0)
                    for i in range(min(32, groups * each - 32 * word)):
                        f = 32 * word + i
                        at = (f // each) * blocks * LANES + f % each
                        if 2 * (np.int64(inside[at]) + np.int64(outside[at])) + start > thresholds[f]:
                            bits |= np.uint32(1) << np.uint32(i)
                    out[window * ((groups * each + 31) // 32) + word] = bits
                continue
            for group in range(groups):
                for i in range(each):
                    f, at = group * each + i, group * blocks * LANES + i
                    total = 2 * (np.int64(inside[at]) + np.int64(outside[at])) + start
                    total = min(max(total, low), high)
                    value = np.float32(total) * factors[f] + offsets[f]
                    if kind == INTEGERS:
                        value = value if value >= _LEAST else _LEAST  # NaN too
                        value = value if value <= _MOST else _MOST
                        value += _HALF if value >= np.float32(0) else -_HALF
                        out[window * groups * each + f] = np.int32(value)
                        continue
                    if zero_padding == 2 and missed > 0:
                        value += np.float32(channels * missed - 2 * np.int64(outside[at])) * factors[f]
                    out[window * groups * each + f] = value

    arrays = ", ".join(f"{type}[::1]" for type in ("u4", "u4", "u4", "f4", "f4", "i8", kind))
    return Kernel(binary, f"void({arrays}, i4[:,:,::1], i8[::1], i8, i8, i8)")
