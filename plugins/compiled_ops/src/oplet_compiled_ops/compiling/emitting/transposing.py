"""Copies of numbers, and in-register transposes of 16 x 16 blocks, as raw bits."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import F32, I8, I32, I64, LANES, cgutils, load_some, mask_below, store

__all__ = ["copy_items", "turn_square"]

#: Floats are used for all four-byte numbers; nothing is computed with them.
_SCALARS = {1: I8, 4: F32}


def _copy_code(context: Any, size: Any, source: Any, target: Any, count: Any) -> Any:
    """Return the signature and generator of an intrinsic that copies `count` adjacent numbers of `size` bytes (1 or 4) between
    addresses.
    """

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
    """Return the signature and generator of an intrinsic that transposes a block of at most 16 x 16 numbers of `size` bytes (1 or
    4).

    `rows` and `columns` are those of the block in the source; both strides are the bytes from one row to the next.
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
