"""Vectorized reductions of float32: row maximum and minimum, max-pool windows, column means. Numba's compiler may not vectorize
them itself, as it must keep the order of sums, and of comparisons with NaN.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import (
    F32,
    I32,
    I64,
    LANES,
    broadcast,
    constant,
    load,
    load_some,
    mask_below,
    store,
)

cgutils: Any = numba_cgutils  # it has no types

__all__ = ["column_means", "largest", "smallest", "window"]

#: The sums that a column's mean is made of, so that an addition need not wait for the one before.
_SUMS = 4


def _extreme(compare: str, of_none: float) -> Any:
    """Build a numba intrinsic (address, count) for the largest or smallest of `count` float32 numbers.

    Args:
        compare: the comparison that a better number wins: ">" for the largest, "<" for the smallest. A NaN never wins, and may be
            ignored.
        of_none: the result if `count` is 0.
    """

    def code(context: Any, start: Any, count: Any) -> Any:
        return types.float32(types.int64, types.int64), _generator(compare, of_none)

    return intrinsic(code)


def _generator(compare: str, of_none: float) -> Any:
    def generate(_: Any, b: ir.IRBuilder, __: Any, arguments: list[Any]) -> Any:
        start, count = arguments
        none = constant(of_none, F32)
        found = [cgutils.alloca_once_value(b, none) for _ in range(2)]

        def take(slot: Any, values: Any) -> None:
            before = b.load(slot)
            b.store(b.select(b.fcmp_ordered(compare, values, before), values, before), slot)

        pairs = b.sdiv(count, I64(2 * LANES))
        with cgutils.for_range(b, pairs, intp=I64) as pair:
            at = b.mul(pair.index, I64(8 * LANES))
            for half, slot in enumerate(found):
                take(slot, load(b, start, b.add(at, I64(4 * LANES * half)), F32))
        done = b.mul(pairs, I64(2 * LANES))
        for half, slot in enumerate(found):
            first = b.add(done, I64(LANES * half))
            mask = mask_below(b, b.sub(count, first))
            take(slot, b.select(mask, load_some(b, start, b.mul(first, I64(4)), F32, mask), none))
        row, other = (b.load(slot) for slot in found)
        row = b.select(b.fcmp_ordered(compare, row, other), row, other)
        lanes = LANES
        while lanes > 1:
            lanes //= 2
            turned = b.shuffle_vector(
                row, row, ir.Constant(ir.VectorType(I32, LANES), [(i + lanes) % LANES for i in range(LANES)])
            )
            row = b.select(b.fcmp_ordered(compare, row, turned), row, turned)
        return b.extract_element(row, I32(0))

    return generate


#: Called in kernels with all arguments but the first, the typing context.
largest: Any = _extreme(">", float("-inf"))
smallest: Any = _extreme("<", float("inf"))


def _window_code(
    context: Any, taps: Any, source: Any, row_bytes: Any, rows: Any, columns: Any, channels: Any, target: Any, low: Any, high: Any
) -> Any:
    """Return the signature and generator of an intrinsic that stores, for each float32 channel, the clamped maximum over a
    window.

    `source` is the address of the window's first pixel, `row_bytes` the distance of its rows. `taps` is a literal: the rows and
    columns of a square window, whose loops are unrolled then; 0 for windows of any size. Columns are compared first; of equal
    numbers (0 and -0) the first is kept, as is NaN. `low` and `high` are the bounds of the clamp, `target` is the address for the
    maxima.
    """
    size = taps.literal_value

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        source, row_bytes, rows, columns, channels, target, low, high = arguments[1:]
        bounds = [broadcast(b, bound) for bound in (low, high)]
        pixel = b.mul(channels, I64(4))
        slot = cgutils.alloca_once(b, ir.VectorType(F32, LANES))
        with cgutils.for_range(b, b.sdiv(b.add(channels, I64(LANES - 1)), I64(LANES)), intp=I64) as part:
            at = b.mul(part.index, I64(LANES * 4))
            mask = mask_below(b, b.sub(channels, b.mul(part.index, I64(LANES))))

            def tap(row: Any, column: Any) -> Any:
                where = b.add(at, b.add(b.mul(row, row_bytes), b.mul(column, pixel)))
                return load_some(b, source, where, F32, mask)

            def larger(most: Any, other: Any) -> Any:
                kept = b.or_(b.fcmp_ordered(">=", most, other), b.fcmp_unordered("uno", most, most))
                return b.select(kept, most, other)

            most = tap(I64(0), I64(0))
            if size:
                for number in range(1, size * size):
                    most = larger(most, tap(I64(number % size), I64(number // size)))
            else:
                b.store(most, slot)
                with cgutils.for_range(b, columns, intp=I64) as column, cgutils.for_range(b, rows, intp=I64) as row:
                    b.store(larger(b.load(slot), tap(row.index, column.index)), slot)
                most = b.load(slot)
            most = b.select(b.fcmp_ordered("<", most, bounds[0]), bounds[0], most)
            most = b.select(b.fcmp_ordered(">", most, bounds[1]), bounds[1], most)
            store(b, most, target, at, mask)
        return ctx.get_dummy_value()

    return types.void(taps, *[types.int64] * 6, types.float32, types.float32), generate


#: Called in kernels with all arguments but the first, the typing context.
window: Any = intrinsic(prefer_literal=True)(_window_code)


def _column_means_code(context: Any, source: Any, rows: Any, columns: Any, target: Any) -> Any:
    """Return the signature and generator of an intrinsic that stores the mean of each column of a C-contiguous float32 table.

    Each mean is made of four interleaved partial sums, so that an addition need not wait for the one before.
    """

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        source, rows, columns, target = arguments
        line = b.mul(columns, I64(4))
        count = broadcast(b, b.sitofp(rows, F32))
        kind = ir.VectorType(F32, LANES)
        sums = [cgutils.alloca_once(b, kind) for _ in range(_SUMS)]
        together = b.sdiv(rows, I64(_SUMS))
        with cgutils.for_range(b, b.sdiv(b.add(columns, I64(LANES - 1)), I64(LANES)), intp=I64) as part:
            at = b.mul(part.index, I64(LANES * 4))
            mask = mask_below(b, b.sub(columns, b.mul(part.index, I64(LANES))))
            for slot in sums:
                b.store(ir.Constant(kind, None), slot)

            def add(row: Any, slot: Any) -> None:
                values = load_some(b, source, b.add(at, b.mul(row, line)), F32, mask)
                b.store(b.fadd(b.load(slot), values), slot)

            with cgutils.for_range(b, together, intp=I64) as some:
                for number, slot in enumerate(sums):
                    add(b.add(b.mul(some.index, I64(_SUMS)), I64(number)), slot)
            done = b.mul(together, I64(_SUMS))
            with cgutils.for_range(b, b.sub(rows, done), intp=I64) as single:
                add(b.add(done, single.index), sums[0])
            first, second, third, fourth = (b.load(slot) for slot in sums)
            total = b.fadd(b.fadd(first, second), b.fadd(third, fourth))
            store(b, b.fdiv(total, count), target, at, mask)
        return ctx.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


#: Called in kernels with all arguments but the first, the typing context.
column_means: Any = intrinsic(_column_means_code)
