"""Register-blocked matrix product: one tile (a few convolution windows) times one panel (a few vectors of filters)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import (
    F32,
    I32,
    I64,
    LANES,
    Finish,
    address,
    broadcast,
    cgutils,
    constant,
    dot_bytes,
    dot_pairs,
    load,
    mask_below,
    multiply_add,
    store,
)
from oplet_compiled_ops.library.levels import current

__all__ = ["scaled_tile", "tile"]


def _windows(b: ir.IRBuilder, count: int, first: Any, last: Any) -> list[Any]:
    """Return the numbers of a tile's `count` windows, from `first` on.

    Those from `last` on are replaced by the window before `last`, whose outputs are then stored more than once, with equal
    values.
    """
    numbers = (b.add(first, I64(m)) for m in range(count))
    return [b.select(b.icmp_signed("<", number, last), number, b.sub(last, I64(1))) for number in numbers]


def _tile_code(
    context: Any, vectors: Any, rows: Any, integer: Any, bits: Any, rounding: Any,
    source: Any, pixels: Any, runs: Any, run_count: Any, run_length: Any, weights: Any,
    table: Any, channels: Any, channel: Any, columns: Any, output: Any, row_bytes: Any,
    first: Any, last: Any, low: Any, high: Any, zero: Any,
) -> Any:  # fmt: skip
    """Return the signature and generator of an intrinsic that computes and stores a tile: some windows' outputs for a panel of
    filters.

    The panel has `vectors` vectors of 16 filters, from the filter `channel` on, of which `columns` exist. The tile has `rows`
    windows from `first` on; those from `last` on do not exist. `pixels` and `runs` are the addresses of the windows' start
    offsets, and of the offsets of a window's runs of consecutive values. The other arguments are those of
    `convolution.tiles.product_kernel` and its kernel.
    """
    literals = (vectors, rows, integer, bits, rounding)
    signature = types.void(*literals, *[types.int64] * 14, *[types.float64] * 3)
    n_vectors, n_rows, is_integer, n_bits, how = (literal.literal_value for literal in literals)

    def emit(_: Any, b: ir.IRBuilder, __: Any, arguments: list[Any]) -> Any:
        (source, pixels, runs, run_count, run_length, weights, table, channels, channel, columns, output, row_bytes,
         first, last, low, high, zero) = arguments[5:]  # fmt: skip
        scalar = I32 if is_integer else F32
        finish = Finish(b, n_bits, how, table, channels, low, high, zero)
        starts = [b.add(channel, I64(v * LANES)) for v in range(n_vectors)]
        numbers = _windows(b, n_rows, first, last)
        bases = [b.add(source, b.load(address(b, pixels, b.mul(number, I64(8)), I64))) for number in numbers]
        begin = [finish.start(start, bool(is_integer)) for start in starts]
        sums = [[cgutils.alloca_once(b, value.type) for value in begin] for _ in bases]
        for row in sums:
            for slot, value in zip(row, begin):
                b.store(value, slot)
        panel = b.mul(run_length, I64(n_vectors * LANES * 4))
        with cgutils.for_range(b, run_count, intp=I64) as run:
            offset = b.load(address(b, runs, b.mul(run.index, I64(8)), I64))
            inputs = [b.add(base, offset) for base in bases]
            filters = b.add(weights, b.mul(run.index, panel))
            with cgutils.for_range(b, run_length, intp=I64) as step:
                where = b.mul(step.index, I64(n_vectors * LANES * 4))
                right = [load(b, filters, b.add(where, I64(v * LANES * 4)), scalar) for v in range(n_vectors)]
                at = b.mul(step.index, I64(4))
                for row, values in zip(sums, inputs):
                    left = broadcast(b, b.load(address(b, values, at, scalar), align=1 if is_integer else 4))
                    for slot, factor in zip(row, right):
                        total = b.load(slot)
                        b.store((dot_bytes if is_integer else multiply_add)(b, left, factor, total), slot)
        masks = [mask_below(b, b.sub(columns, I64(v * LANES))) for v in range(n_vectors)]
        size = n_bits // 8
        for row, number in zip(sums, numbers):
            base = b.add(output, b.mul(number, row_bytes))
            for v, (slot, start) in enumerate(zip(row, starts)):
                store(b, finish.outputs(b.load(slot), start), base, I64(v * LANES * size), masks[v])

    def generate(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit(ctx, builder, sig, args)
        return ctx.get_dummy_value()

    return signature, generate


#: Called in kernels with all arguments but the first, the typing context.
tile: Any = intrinsic(prefer_literal=True)(_tile_code)


#: Of each byte, the bits that hold a 4-bit number times 16.
_UPPER = 0xF0F0F0F0 - (1 << 32)
#: Of each byte, the bit that turns a number from 0 to 255 into one from -128 on.
_SIGNS = 0x80808080 - (1 << 32)


def _scaled_tile_code(
    context: Any, vectors: Any, rows: Any, packed: Any, blocked: Any,
    source: Any, pixels: Any, runs: Any, run_count: Any, run_length: Any, weights: Any, marks: Any,
    table: Any, channels: Any, channel: Any, columns: Any, output: Any, row_bytes: Any,
    zeros: Any, factors: Any, per: Any, in_turn: Any, first: Any, last: Any, low: Any, high: Any,
) -> Any:  # fmt: skip
    """Return the signature and generator of an intrinsic that computes and stores a tile of a hybrid layer, as floats.

    The activations are bytes that were quantized at run time; integer sums are scaled to floats. See
    `convolution.tiles.scaled_kernel` for the arguments.
    """
    literals = (vectors, rows, packed, blocked)
    signature = types.void(*literals, *[types.int64] * 19, *[types.float64] * 2)
    n_vectors, n_rows, is_packed, is_blocked = (literal.literal_value for literal in literals)
    integers, floats = ir.VectorType(I32, LANES), ir.VectorType(F32, LANES)
    width = n_vectors * LANES * 4

    def emit(_: Any, b: ir.IRBuilder, __: Any, arguments: list[Any]) -> Any:
        (source, pixels, runs, run_count, run_length, weights, marks, table, channels, channel, columns, output, row_bytes,
         zeros, factors, per, in_turn, first, last, low, high) = arguments[4:]  # fmt: skip
        numbers = _windows(b, n_rows, first, last)
        bases = [b.add(source, b.load(address(b, pixels, b.mul(number, I64(8)), I64))) for number in numbers]
        batches = [b.mul(b.sdiv(number, per), I64(4)) for number in numbers]
        offsets = [broadcast(b, b.load(address(b, zeros, batch, I32), align=4)) for batch in batches]
        signed = current().byte_products == "sdot"
        if signed:  # activations and their zero points are 128 more than the numbers that it multiplies
            offsets = [b.sub(offset, constant(128, I32)) for offset in offsets]
        each = [(m, v) for m in range(n_rows) for v in range(n_vectors)]
        sums = {place: cgutils.alloca_once(b, integers) for place in each}
        totals = {place: cgutils.alloca_once(b, floats) for place in each} if is_blocked else {}
        for slot in sums.values():
            b.store(constant(0, I32), slot)
        for slot in totals.values():
            b.store(constant(0.0, F32), slot)
        # Sums of packed weights are 16 times as large; the upper half of a mark is multiplied with 0.
        taken = [b.and_(b.mul(offset, constant(-16, I32)), constant(0xFFFF, I32)) for offset in offsets] if is_blocked else []

        panel = b.mul(run_length, I64(width))
        with cgutils.for_range(b, run_count, intp=I64) as run:
            offset = b.load(address(b, runs, b.mul(run.index, I64(8)), I64))
            inputs = [b.add(base, offset) for base in bases]
            filters = b.add(weights, b.mul(run.index, panel))
            scales = []
            if is_blocked:
                for v in range(n_vectors):
                    both = load(b, marks, b.add(b.mul(run.index, I64(width)), I64(v * LANES * 4)), I32)
                    scales.append(b.bitcast(b.and_(both, constant(-(1 << 16), I32)), floats))
                    for m in range(n_rows):
                        b.store(dot_pairs(b, both, taken[m], constant(0, I32)), sums[m, v])
            with cgutils.for_range(b, run_length, intp=I64) as step:
                where = b.mul(step.index, I64(width))
                right = [load(b, filters, b.add(where, I64(v * LANES * 4)), I32) for v in range(n_vectors)]
                at = b.mul(step.index, I64(8 if is_packed else 4))
                groups = [(0, right)]
                if is_packed:
                    upper = constant(_UPPER, I32)
                    groups = [
                        (0, [b.and_(b.shl(pair, constant(4, I32)), upper) for pair in right]),
                        (4, [b.and_(pair, upper) for pair in right]),
                    ]
                for further, factors_of in groups:
                    for m, values in enumerate(inputs):
                        word = b.load(address(b, values, b.add(at, I64(further)), I32), align=1)
                        left = broadcast(b, b.xor(word, I32(_SIGNS)) if signed else word)
                        for v, factor in enumerate(factors_of):
                            b.store(dot_bytes(b, left, factor, b.load(sums[m, v])), sums[m, v])
            for m, v in totals:
                b.store(multiply_add(b, b.sitofp(b.load(sums[m, v]), floats), scales[v], b.load(totals[m, v])), totals[m, v])
        bounds = [broadcast(b, b.fptrunc(bound, F32)) for bound in (low, high)]
        row = b.mul(channels, I64(4))
        for v in range(n_vectors):
            where = b.mul(b.add(channel, I64(v * LANES)), I64(4))
            scales, bias = load(b, table, where, F32), load(b, table, b.add(where, row), F32)
            filters = None if is_blocked else load(b, table, b.add(where, b.mul(row, I64(2))), I32)
            mask = mask_below(b, b.sub(columns, I64(v * LANES)))
            for m, (number, batch) in enumerate(zip(numbers, batches)):
                if is_blocked:
                    total = b.load(totals[m, v])
                else:
                    total = b.load(sums[m, v])
                    total = b.ashr(total, constant(4, I32)) if is_packed else total
                    total = b.sitofp(b.sub(total, b.mul(offsets[m], filters)), floats)
                factor = broadcast(b, b.load(address(b, factors, batch, F32), align=4))
                at_once = b.fadd(b.fmul(total, b.fmul(factor, scales)), bias)
                turns = multiply_add(b, b.fmul(total, factor), scales, bias)
                total = b.select(b.icmp_signed("!=", in_turn, I64(0)), turns, at_once)
                # NaN is kept.
                total = b.select(b.fcmp_ordered("<", total, bounds[0]), bounds[0], total)
                total = b.select(b.fcmp_ordered(">", total, bounds[1]), bounds[1], total)
                store(b, total, b.add(output, b.mul(number, row_bytes)), I64(v * LANES * 4), mask)

    def generate(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit(ctx, builder, sig, args)
        return ctx.get_dummy_value()

    return signature, generate


#: Called in kernels with all arguments but the first, the typing context.
scaled_tile: Any = intrinsic(prefer_literal=True)(_scaled_tile_code)
