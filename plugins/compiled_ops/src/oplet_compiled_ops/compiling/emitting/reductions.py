"""Vectorized reductions of float32: row maximum, minimum and sums, max-pool windows, column means. Numba's compiler may not vectorize
them itself, as it must keep the order of sums, and of comparisons with NaN. And maps by instructions of AVX-512 that no loop is
compiled to: logistic functions and inverse roots, as XNNPACK has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import (
    F32,
    I32,
    I64,
    LANES,
    broadcast,
    cgutils,
    constant,
    load,
    load_some,
    mask_below,
    multiply_add,
    store,
)
from oplet_compiled_ops.library.levels import current

__all__ = ["column_means", "exp_total", "largest", "logistics", "rsqrt", "rsqrts", "smallest", "squares", "total", "window"]

_FLOATS, _INTEGERS = ir.VectorType(F32, LANES), ir.VectorType(I32, LANES)
#: 1.5 * 2**18: a sum with it has 5 bits after the point.
_ROUNDER, _LOG2_E = 393216.0, float(np.float32(np.log2(np.e)))
_LN2_HIGH, _LN2_LOW = float.fromhex("-0x1.62e43p-1"), float.fromhex("0x1.05c61p-29")
_C1, _LOWEST = float.fromhex("0x1.0000f6p0"), float.fromhex("-0x1.5d589ep6")
#: 2**(i / 32).
_POWERS = [ir.Constant(_FLOATS, [float(np.float32(2 ** (i / 32))) for i in range(at, at + LANES)]) for at in (0, LANES)]
#: The sums that a column's mean is made of, so that an addition need not wait for the one before.
_SUMS = 4


def _reduction(step: Any, join: Any, neutral: float, count: int, late: int = 0) -> Any:
    """Build a numba intrinsic (address, count) that reduces float32 numbers to one, in `count` partial results of 16 lanes each.

    Vectors go to the partial results in turns (`step`), then the second half of these is joined with the first until one is left. It takes
    the numbers that fill no vector, and is halved in the same way: the order of XNNPACK's kernels with AVX-512. With `late` vectors of
    a turn, several of each partial result, those that fill no turn come after the joining.
    """
    together = max(late, count)

    def generate(_: Any, b: ir.IRBuilder, __: Any, arguments: list[Any]) -> Any:
        start, left = arguments
        none = constant(neutral, F32)
        rows = [cgutils.alloca_once_value(b, none) for _ in range(count)]
        turns = b.sdiv(left, I64(together * LANES))
        with cgutils.for_range(b, turns, intp=I64) as turn:
            for number in range(together):
                at = b.add(b.mul(turn.index, I64(4 * LANES * together)), I64(4 * LANES * number))
                row = rows[number % count]
                b.store(step(b, b.load(row), load(b, start, at, F32)), row)
        done = b.mul(turns, I64(together * LANES))
        left = b.sub(left, done)

        def some(first: Any, number: Any) -> Any:
            mask = mask_below(b, number)
            return b.select(mask, load_some(b, start, b.mul(first, I64(4)), F32, mask), none)

        def joined(parts: list[Any]) -> list[Any]:
            while len(parts) > 1:
                half = len(parts) // 2
                parts = [join(b, one, other) for one, other in zip(parts[:half], parts[half:])]
            return parts

        parts = [b.load(row) for row in rows]
        parts = joined(parts) if late else parts
        for number in range(together - 1):
            whole = b.select(b.icmp_signed(">=", left, I64(LANES)), I64(LANES), I64(0))
            parts[number % len(parts)] = step(b, parts[number % len(parts)], some(done, whole))
            done, left = b.add(done, whole), b.sub(left, whole)
        found, lanes = step(b, joined(parts)[0], some(done, left)), LANES
        while lanes > 1:
            lanes //= 2
            turned = [(i + lanes) % LANES for i in range(LANES)]
            found = join(b, found, b.shuffle_vector(found, found, ir.Constant(ir.VectorType(I32, LANES), turned)))
        return b.extract_element(found, I32(0))

    def code(context: Any, start: Any, count: Any) -> Any:
        return types.float32(types.int64, types.int64), generate

    return intrinsic(code)


def _extreme(compare: str, neutral: float) -> Any:
    """Build the intrinsic for the largest (">") or smallest ("<") of numbers. A NaN never wins, and may be ignored."""

    def better(b: ir.IRBuilder, before: Any, values: Any) -> Any:
        return b.select(b.fcmp_ordered(compare, values, before), values, before)

    return _reduction(better, better, neutral, 2)


def _add(b: ir.IRBuilder, one: Any, other: Any) -> Any:
    return b.fadd(one, other)


#: Called in kernels with all arguments but the first, the typing context.
largest: Any = _extreme(">", float("-inf"))
smallest: Any = _extreme("<", float("inf"))
#: The sum, as XNNPACK's f32-rsum (avx512f-u32-acc2) has it, and that of exponentials (f32-raddstoreexpminusmax, avx512f-rr2-p5-u64-acc2).
total: Any = _reduction(_add, _add, 0.0, 2)
exp_total: Any = _reduction(_add, _add, 0.0, 2, late=4)
#: The sum of squares, as XNNPACK's f32-rsum2 (avx512f-u64-acc4) has it, which it makes of MUL and MEAN.
squares: Any = _reduction(lambda b, sums, x: multiply_add(b, x, x, sums), _add, 0.0, 4)


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


def _assembled(b: ir.IRBuilder, text: str, constraints: str, *arguments: Any) -> Any:
    kind = ir.FunctionType(arguments[0].type, [argument.type for argument in arguments])
    return b.call(ir.InlineAsm(kind, text, constraints, side_effect=False), arguments)


def _has_estimates() -> bool:
    """Return whether the processor has AVX-512's estimates, permutations and powers."""
    return current().name.startswith("x86-64-v4")


def _rsqrt(b: ir.IRBuilder, x: Any) -> Any:
    """Emit 1 / sqrt(x) of a number or a vector; with AVX-512 an estimate and a Newton step; infinity of 0."""
    wide = isinstance(x.type, ir.VectorType)
    zero, least, half, one, shift, root, infinite = (
        constant(v, F32) if wide else F32(v) for v in (0.0, 2.0**-126, 0.5, 1.0, 2.0**24, 2.0**12, float("inf"))
    )
    if not _has_estimates():
        return b.fdiv(one, b.call(b.module.declare_intrinsic("llvm.sqrt", [x.type]), [x]))
    is_denormal = b.fcmp_ordered("<", x, least)  # whose estimate's square would be infinite
    x = b.select(is_denormal, b.fmul(x, shift), x)
    y = _assembled(b, "vrsqrt14ps $1, $0" if wide else "vrsqrt14ss $1, $1, $0", "=v,v", x)
    step = b.fmul(b.fsub(b.fmul(x, b.fmul(y, y)), one), b.fmul(half, y))
    found = b.select(b.fcmp_ordered("==", x, infinite), zero, b.fsub(y, step))
    found = b.select(b.fcmp_ordered("==", x, zero), y, found)
    return b.fmul(found, b.select(is_denormal, root, one))


def _rsqrt_code(context: Any, value: Any) -> Any:
    return types.float32(types.float32), lambda _, b, __, arguments: _rsqrt(b, arguments[0])


def _logistic(b: ir.IRBuilder, x: Any) -> Any:
    """Emit 1 / (1 + exp(-x)) of a vector; exp is a power of two, from a table and AVX-512's scaling, times a polynomial."""
    c = {v: constant(v, F32) for v in (_ROUNDER, -_ROUNDER, _LOG2_E, _LN2_HIGH, _LN2_LOW, _C1, _LOWEST, 0.5, 1.0, 0.0)}
    bits = b.bitcast(x, _INTEGERS)
    z = b.bitcast(b.or_(bits, constant(-(1 << 31), I32)), _FLOATS)
    n = multiply_add(b, z, c[_LOG2_E], c[_ROUNDER])
    power = _assembled(b, "vpermt2ps $3, $2, $0", "=v,0,v,v", _POWERS[0], b.bitcast(n, _INTEGERS), _POWERS[1])
    n = b.fadd(n, c[-_ROUNDER])
    t = multiply_add(b, n, c[_LN2_LOW], multiply_add(b, n, c[_LN2_HIGH], z))
    p = multiply_add(b, b.fmul(t, power), multiply_add(b, t, c[0.5], c[_C1]), power)
    e = _assembled(b, "vscalefps $2, $1, $0", "=v,v,v", p, n)
    e = b.select(b.fcmp_ordered("<", z, c[_LOWEST]), c[0.0], e)
    below = b.fdiv(e, b.fadd(e, c[1.0]))
    return b.select(b.icmp_signed("<", bits, constant(0, I32)), below, b.fsub(c[1.0], below))


def _mapped(function: Callable[[ir.IRBuilder, Any], Any]) -> Any:
    """Build an intrinsic (address, address of the results, count) for a function of vectors; it gives how many numbers it has done:
    all, or none where the processor lacks the instructions.
    """

    def generate(_: Any, b: ir.IRBuilder, __: Any, arguments: list[Any]) -> Any:
        if not _has_estimates():
            return I64(0)
        source, target, count = arguments
        with cgutils.for_range(b, b.sdiv(b.add(count, I64(LANES - 1)), I64(LANES)), intp=I64) as turn:
            at = b.mul(turn.index, I64(4 * LANES))
            mask = mask_below(b, b.sub(count, b.mul(turn.index, I64(LANES))))
            store(b, function(b, load_some(b, source, at, F32, mask)), target, at, mask)
        return count

    def code(context: Any, source: Any, target: Any, count: Any) -> Any:
        return types.int64(*[types.int64] * 3), generate

    return intrinsic(code)


#: Called in kernels with all arguments but the first, the typing context.
rsqrt: Any = intrinsic(_rsqrt_code)
rsqrts: Any = _mapped(_rsqrt)
logistics: Any = _mapped(_logistic)
