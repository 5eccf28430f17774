"""RESIZE_BILINEAR of float and 8-bit maps: interpolates between two rows, then between two columns of the result.

A call computes the rows `begin` to `end` of all outputs together.
"""

from __future__ import annotations

import numpy as np

from oplet_numba_ops.compiling.kernels import kernel
from oplet_numba_ops.compiling.lazy import emitted

__all__ = ["RESIZE_FLOATS", "RESIZE_INT8", "RESIZE_UINT8"]

shaped = emitted("views:shaped")

_ONE, _HALF = np.float32(1), np.float32(0.5)
_AXIS = "i8[::1], i8[::1]"


_between = emitted("resizing:between")


@kernel(f"void(i1[:,:,:,::1], i1[:,:,:,::1], i8, i8, i4[::1], {_AXIS}, i4[::1], i4, {_AXIS}, i4[::1], i4, i4)")
def RESIZE_INT8(x, out, begin, end, row, top, bottom, down, one_down, left, right, across, one_across, bits):  # type: ignore[no-untyped-def]
    """Interpolate with integer weights whose products have `bits` fraction bits; ties round away from zero."""
    batch, height, width, channels = x.shape
    rows = shaped(x, (batch, height, width * channels))
    half = np.int32((1 << bits) >> 1)
    for number in range(begin, end):
        n, i = number // out.shape[1], number % out.shape[1]
        upper, lower = rows[n, top[i]], rows[n, bottom[i]]
        share = down[i]
        rest = np.int32(one_down - share)
        for k in range(row.size):
            row[k] = upper[k] * rest + lower[k] * share
        for j in range(out.shape[2]):
            first, second = row[left[j] * channels :][:channels], row[right[j] * channels :][:channels]
            share = across[j]
            rest = np.int32(one_across - share)
            target = out[n, i, j]
            for c in range(channels):
                total = np.int32(first[c] * rest + second[c] * share)
                sign = total >> 31
                target[c] = ((((total ^ sign) - sign) + half >> bits) ^ sign) - sign


@kernel(f"void(u1[:,:,:,::1], u1[:,:,:,::1], i8, i8, f4[::1], f4[::1], {_AXIS}, f4[::1], {_AXIS}, f4[::1])")
def RESIZE_UINT8(x, out, begin, end, high, low, top, bottom, down, left, right, across):  # type: ignore[no-untyped-def]
    """Interpolate uint8 in the reference kernel's order of operations."""
    batch, height, width, channels = x.shape
    rows = shaped(x, (batch, height, width * channels))
    for number in range(begin, end):
        n, i = number // out.shape[1], number % out.shape[1]
        upper, lower = rows[n, top[i]], rows[n, bottom[i]]
        share = down[i]
        for k in range(high.size):
            high[k] = np.float32(upper[k]) * (_ONE - share)
            low[k] = np.float32(lower[k]) * share
        for j in range(out.shape[2]):
            a, b = high[left[j] * channels :][:channels], low[left[j] * channels :][:channels]
            c, d = high[right[j] * channels :][:channels], low[right[j] * channels :][:channels]
            share = across[j]
            rest = _ONE - share
            target = out[n, i, j]
            for k in range(channels):
                total = a[k] * rest + b[k] * rest
                total = total + c[k] * share
                total = total + d[k] * share
                target[k] = np.int32(total + _HALF)


@kernel(f"void(f4[:,:,:,::1], f4[:,:,:,::1], i8, i8, f4[::1], {_AXIS}, f4[::1], {_AXIS}, f4[::1])")
def RESIZE_FLOATS(x, out, begin, end, row, top, bottom, down, left, right, across):  # type: ignore[no-untyped-def]
    """Interpolate floats between two rows, then between the columns of the result."""
    batch, height, width, channels = x.shape
    rows = shaped(x, (batch, height, width * channels))
    for number in range(begin, end):
        n, i = number // out.shape[1], number % out.shape[1]
        upper, lower = rows[n, top[i]], rows[n, bottom[i]]
        share = down[i]
        rest = _ONE - share
        for k in range(row.size):
            row[k] = upper[k] * rest + lower[k] * share
        _between(
            row.ctypes.data, left.ctypes.data, right.ctypes.data, across.ctypes.data,
            out[n, i].ctypes.data, out.shape[2], channels,
        )  # fmt: skip
