"""Bilinear interpolation between pixels of a row."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import (
    F32,
    I64,
    LANES,
    address,
    broadcast,
    cgutils,
    load_some,
    mask_below,
    store,
)

__all__ = ["between"]


@intrinsic
def between(context, row, left, right, across, target, count, channels):  # type: ignore[no-untyped-def]
    """Emit LLVM IR that computes `count` pixels of `channels` float32 each, interpolated between two pixels of a row.

    All arguments but numba's `context` and the numbers are addresses: of the row, of each output's left and right neighbours'
    positions (int64), of the right neighbours' weights (`across`, float32; the left ones have 1 minus that), and of the outputs.
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
