"""RESIZE_BILINEAR of floats and 8-bit numbers: first interpolates between two rows, then between two columns of the result.

A call computes the rows `begin` to `end` of all outputs together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic

from oplet_numba_ops.compiling.kernels import kernel
from oplet_numba_ops.compiling.vectors import F32, I64, LANES, address, broadcast, load_some, mask_below, store

cgutils: Any = numba_cgutils  # it has no types

__all__ = ["RESIZE_FLOATS", "RESIZE_INT8", "RESIZE_UINT8"]

_ONE, _HALF = np.float32(1), np.float32(0.5)
_AXIS = "i8[::1], i8[::1]"


@intrinsic
def _between(context, row, left, right, across, target, count, channels):  # type: ignore[no-untyped-def]
    """Emit code for `count` pixels, each interpolated between two pixels of a row of floats; addresses and the number of
    channels.
    """

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: Any) -> Any:
        row, left, right, across, target, count, channels = arguments
        wide = b.mul(channels, I64(4))
        vectors = b.sdiv(b.add(channels, I64(LANES - 1)), I64(LANES))
        one = ir.Constant(F32, 1.0)
        with cgutils.for_range(b, count, intp=I64) as pixel:
            index = b.mul(pixel.index, I64(8))
            first, second = (b.add(row, b.mul(b.load(address(b, axis, index, I64)), wide)) for axis in (left, right))
            share = b.load(address(b, across, b.mul(pixel.index, I64(4)), F32))
            shares, rests = broadcast(b, share), broadcast(b, b.fsub(one, share))
            base = b.add(target, b.mul(pixel.index, wide))
            with cgutils.for_range(b, vectors, intp=I64) as part:
                at = b.mul(part.index, I64(LANES * 4))
                mask = mask_below(b, b.sub(channels, b.mul(part.index, I64(LANES))))
                values = [
                    b.fmul(load_some(b, pixel_of, at, F32, mask), of) for pixel_of, of in ((first, rests), (second, shares))
                ]
                store(b, b.fadd(*values), base, at, mask)
        return ctx.get_dummy_value()

    return types.void(*[types.int64] * 7), generate


@kernel(f"void(i1[:,:,:,::1], i1[:,:,:,::1], i8, i8, i4[::1], {_AXIS}, i4[::1], i4, {_AXIS}, i4[::1], i4, i4)")
def RESIZE_INT8(x, out, begin, end, row, top, bottom, down, one_down, left, right, across, one_across, bits):  # type: ignore[no-untyped-def]
    """Interpolate with integer weights; the products of both axes' ones have `bits` bits. Halves are rounded away from zero."""
    batch, height, width, channels = x.shape
    rows = x.reshape(batch, height, width * channels)
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
    """Interpolate in the reference kernel's order of operations."""
    batch, height, width, channels = x.shape
    rows = x.reshape(batch, height, width * channels)
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
    """Interpolate between two rows, then between the columns of the result."""
    batch, height, width, channels = x.shape
    rows = x.reshape(batch, height, width * channels)
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
