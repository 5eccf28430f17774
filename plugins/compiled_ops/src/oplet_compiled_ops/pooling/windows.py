"""Pooling kernels, which `pools` declares: each window is reduced one row of channels at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet_compiled_ops.library.lazy import emitted, inlined

shaped = emitted("views:shaped")
window = emitted("reductions:window")

#: The most taps of a window whose maximum is taken tap by tap, instead of rows first, whose maxima neighbouring windows share.
_FEW = 9

_inlined: Any = inlined(error_model="numpy", boundscheck=False)


@_inlined
def _clip(value, low, high):  # type: ignore[no-untyped-def]
    value = low if value < low else value
    return high if value > high else value


@_inlined
def _larger(one, other):  # type: ignore[no-untyped-def]
    return one if one >= other or one != one else other  # NaN is kept


@_inlined
def _largest(rows, folded):  # type: ignore[no-untyped-def]
    for i in range(folded.size):
        folded[i] = rows[0, i]
    for row in range(1, rows.shape[0]):
        source = rows[row]
        for i in range(folded.size):
            folded[i] = _larger(folded[i], source[i])


@_inlined
def _sums(rows, folded):  # type: ignore[no-untyped-def]
    for i in range(folded.size):
        folded[i] = rows[0, i]
    for row in range(1, rows.shape[0]):
        source = rows[row]
        for i in range(folded.size):
            folded[i] += source[i]


@_inlined
def _seen(position, size, stride, before, length):  # type: ignore[no-untyped-def]
    start = position * stride - before
    return max(start, 0), min(start + size, length)


@_inlined
def _small_windows(x, out, n, row, top, bottom, low, high, size, stride, before):  # type: ignore[no-untyped-def]
    width, channels = x.shape[2], x.shape[3]
    row_bytes = 4 * width * channels
    source, target = x[n, top].ctypes.data, out[n, row].ctypes.data
    for column in range(out.shape[2]):
        left, right = _seen(column, size, stride, before, width)
        where, to = source + 4 * left * channels, target + 4 * column * channels
        rows, columns = bottom - top, right - left
        if rows == 2 and columns == 2:
            window(2, where, row_bytes, rows, columns, channels, to, low, high)
        elif rows == 3 and columns == 3:
            window(3, where, row_bytes, rows, columns, channels, to, low, high)
        else:
            window(0, where, row_bytes, rows, columns, channels, to, low, high)


@_inlined
def _wide_windows(rows, folded, cells, out, low, high, size, stride, before):  # type: ignore[no-untyped-def]
    _largest(rows, folded)
    channels = cells.shape[1]
    for column in range(out.shape[0]):
        left, right = _seen(column, size, stride, before, cells.shape[0])
        target, start = out[column], left * channels
        if right - left == 2:  # most windows are small: one pass takes the maximum and clamps it
            for c in range(channels):
                target[c] = _clip(_larger(folded[start + c], folded[start + channels + c]), low, high)
            continue
        _largest(cells[left:right], target)
        for c in range(channels):
            target[c] = _clip(target[c], low, high)


def _maximum(x, out, first, last, folded, low, high, size, stride, before):  # type: ignore[no-untyped-def]
    batch, height, width, channels = x.shape
    rows = shaped(x, (batch, height, width * channels))
    cells = shaped(folded, (width, channels))
    for number in range(first, last):
        n, row = number // out.shape[1], number % out.shape[1]
        top, bottom = _seen(row, size[0], stride[0], before[0], height)
        if size[0] * size[1] <= _FEW:
            _small_windows(x, out, n, row, top, bottom, low, high, size[1], stride[1], before[1])
        else:
            _wide_windows(rows[n, top:bottom], folded, cells, out[n, row], low, high, size[1], stride[1], before[1])


def _maximum_integers(x, out, first, last, folded, low, high, size, stride, before):  # type: ignore[no-untyped-def]
    batch, height, width, channels = x.shape
    rows = shaped(x, (batch, height, width * channels))
    cells = shaped(folded, (width, channels))
    for number in range(first, last):
        n, row = number // out.shape[1], number % out.shape[1]
        top, bottom = _seen(row, size[0], stride[0], before[0], height)
        _wide_windows(rows[n, top:bottom], folded, cells, out[n, row], low, high, size[1], stride[1], before[1])


def _average_floats(x, out, first, last, folded, sums, low, high, size, stride, before):  # type: ignore[no-untyped-def]
    batch, height, width, channels = x.shape
    rows = shaped(x, (batch, height, width * channels))
    cells = shaped(folded, (width, channels))
    for number in range(first, last):
        n, row = number // out.shape[1], number % out.shape[1]
        top, bottom = _seen(row, size[0], stride[0], before[0], height)
        _sums(rows[n, top:bottom], folded)
        for column in range(out.shape[2]):
            left, right = _seen(column, size[1], stride[1], before[1], width)
            target = out[n, row, column]
            _sums(cells[left:right], target)
            count = np.float32((bottom - top) * (right - left))
            for c in range(channels):
                target[c] = _clip(target[c] / count, low, high)


def _average_integers(x, out, first, last, folded, sums, low, high, size, stride, before):  # type: ignore[no-untyped-def]
    batch, height, width, channels = x.shape
    rows = shaped(x, (batch, height, width * channels))
    cells = shaped(folded, (width, channels))
    for number in range(first, last):
        n, row = number // out.shape[1], number % out.shape[1]
        top, bottom = _seen(row, size[0], stride[0], before[0], height)
        _sums(rows[n, top:bottom], folded)
        for column in range(out.shape[2]):
            left, right = _seen(column, size[1], stride[1], before[1], width)
            _sums(cells[left:right], sums)
            count = (bottom - top) * (right - left)
            # float64 has enough bits to distinguish the quotients of sums below 2**31; halves are rounded away from zero.
            half, divisor = np.float64(count // 2), np.float64(count)
            target = out[n, row, column]
            for c in range(channels):
                total = np.float64(sums[c])
                total = total - half if total < 0 else total + half
                target[c] = min(max(np.int32(total / divisor), low), high)
