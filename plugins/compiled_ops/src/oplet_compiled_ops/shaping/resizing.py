"""RESIZE_BILINEAR of float and 8-bit maps: kernels that interpolate between two rows of the map, then between two columns of the
result.

A call computes the output rows `begin` to `end` (exclusive) of all maps of the batch together. `top`, `bottom`, `left` and
`right` are the positions of an output's neighbours in the map; `down` and `across` are the weights of the lower and the right
one.
"""

from __future__ import annotations

import numpy as np

from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import emitted

__all__ = ["RESIZE_FLOATS", "RESIZE_INT8", "RESIZE_UINT8"]

shaped = emitted("views:shaped")

_ONE, _HALF = np.float32(1), np.float32(0.5)
_AXIS = "i8[::1], i8[::1]"


_between = emitted("resizing:between")


@kernel(f"void(i1[:,:,:,::1], i1[:,:,:,::1], i8, i8, i4[::1], {_AXIS}, i4[::1], i4, {_AXIS}, i4[::1], i4, i4)")
def RESIZE_INT8(x, out, begin, end, row, top, bottom, down, one_down, left, right, across, one_across, bits):  # type: ignore[no-untyped-def]
    """Compute output rows of int8 maps `x` with integer weights; ties round away from zero.

    Rows `begin` to `end` (exclusive) of all maps are computed. `top`, `bottom`, `left` and `right` are the positions of outputs'
    neighbours; `down` and `across` are the weights of the lower and the right one, and `one_down` and `one_across` what both
    neighbours' weights add up to; results are divided by 2**bits, the product of these sums. `row` is scratch for a row of a map.
    """
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
    """Compute output rows of uint8 maps `x` in float32, in the order of operations of LiteRT's reference kernel.

    Rows `begin` to `end` (exclusive) of all maps are computed. `top`, `bottom`, `left` and `right` are the positions of outputs'
    neighbours; `down` and `across` are the weights of the lower and the right one, the others have 1 minus that. `high` and `low`
    are scratch for a row.
    """
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
    """Compute output rows of float32 maps `x`: interpolate between two rows, then between two columns of the result.

    Rows `begin` to `end` (exclusive) of all maps are computed. `top`, `bottom`, `left` and `right` are the positions of outputs'
    neighbours; `down` and `across` are the weights of the lower and the right one, the others have 1 minus that. `row` is scratch
    for a row of a map.
    """
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
