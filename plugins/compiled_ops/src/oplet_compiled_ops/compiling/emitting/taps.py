"""One output row of a depthwise convolution, and the conversion of its input to float32."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import (
    F32,
    I8,
    I16,
    I64,
    LANES,
    Finish,
    address,
    cgutils,
    load,
    load_some,
    mask_below,
    multiply_add,
    store,
)
from oplet_compiled_ops.convolution.edges import edges
from oplet_compiled_ops.library.levels import windows_together

__all__ = ["any_outputs", "outputs", "pixels"]


def _outputs_code(
    context: Any, height: Any, width: Any, stride: Any, dilation: Any, left: Any, room: Any, pixels: Any, bits: Any, rounding: Any,
    rows: Any, vectors: Any, first: Any, last: Any, weights: Any, table: Any, channels: Any, columns: Any, output: Any, count: Any,
    low: Any, high: Any, zero: Any,
) -> Any:  # fmt: skip
    """Return the signature and generator of an intrinsic for one output row of a depthwise convolution, without loops over taps.

    The arguments up to `rounding` are literals, see `convolution.taps.taps_kernel`. `rows` is the address of the input rows'
    addresses, one for each filter row. An input pixel has `vectors` vectors of 16 channels, of which those from `first` on and
    before `last` are computed; an output pixel has `columns` channels, the row `count` pixels. `table`, `channels` and the last
    three are those of `vectors.Finish`.
    """
    literals = (height, width, stride, dilation, left, room, pixels, bits, rounding)
    signature = types.void(*literals, *[types.int64] * 10, *[types.float64] * 3)
    taps_y, taps_x, step, spread, before, seen_last, together, n_bits, how = (literal.literal_value for literal in literals)
    first_edge, last_edge = edges(taps_x, step, spread, before, seen_last)

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        rows, vectors, first, last, weights, table, channels, columns, output, count, low, high, zero = arguments[9:]
        size = n_bits // 8
        pixel = b.mul(vectors, I64(LANES * 4))
        out_pixel = b.mul(columns, I64(size))
        # From here on, channels are counted from the first vector.
        skipped = b.mul(first, I64(LANES))
        skipped_bytes = b.mul(skipped, I64(4))
        finish = Finish(b, n_bits, how, table, channels, low, high, zero, skipped)
        lines = [b.add(b.load(address(b, rows, I64(8 * i), I64)), skipped_bytes) for i in range(taps_y)]
        weights, columns = b.add(weights, skipped_bytes), b.sub(columns, skipped)
        output = b.add(output, b.mul(skipped, I64(size)))
        with cgutils.for_range(b, b.sub(last, first), intp=I64) as part:
            channel = b.mul(part.index, I64(LANES))
            at = b.mul(channel, I64(4))
            mask = mask_below(b, b.sub(columns, channel))
            factors = []
            for tap in range(taps_y * taps_x):
                factors.append(load(b, weights, b.add(at, b.mul(pixel, I64(tap))), F32))
            begin = finish.start(channel, False)
            target = b.add(output, b.mul(channel, I64(size)))

            def some(number: Any, many: int, lowest: int, above: int) -> None:
                """Emit the outputs of `many` neighbouring windows, the first of which has the number `number`.

                Only input columns from `lowest` on and below `above` are read, counted from that window's start; others are
                padding.
                """
                sums = [begin] * many
                start = b.add(at, b.mul(b.sub(b.mul(number, I64(step)), I64(before)), pixel))
                for i in range(taps_y):
                    loaded: dict[int, Any] = {}
                    for p in range(many):
                        for j in range(taps_x):
                            column = p * step + j * spread
                            if not lowest <= column < above:
                                continue
                            if column not in loaded:
                                loaded[column] = load(b, lines[i], b.add(start, b.mul(pixel, I64(column))), F32)
                            sums[p] = multiply_add(b, loaded[column], factors[i * taps_x + j], sums[p])
                for p, total in enumerate(sums):
                    where = b.mul(b.add(number, I64(p)), out_pixel)
                    store(b, finish.outputs(total, channel), target, where, mask)

            everything = together * step + taps_x * spread
            for x in range(first_edge):
                some(I64(x), 1, before - x * step, everything)
            inside = b.sub(count, I64(first_edge + last_edge))
            blocks = b.sdiv(inside, I64(together))
            with cgutils.for_range(b, blocks, intp=I64) as block:
                some(b.add(b.mul(block.index, I64(together)), I64(first_edge)), together, 0, everything)
            done = b.mul(blocks, I64(together))
            with cgutils.for_range(b, b.sub(inside, done), intp=I64) as single:
                some(b.add(b.add(done, single.index), I64(first_edge)), 1, 0, everything)
            for x in range(last_edge, 0, -1):
                some(b.sub(count, I64(x)), 1, 0, seen_last + (x - 1) * step)
        return ctx.get_dummy_value()

    return signature, generate


#: Called in kernels with all arguments but the first, the typing context.
outputs: Any = intrinsic(prefer_literal=True)(_outputs_code)


def _any_outputs_code(
    context: Any, bits: Any, rounding: Any,
    rows: Any, vectors: Any, first: Any, last: Any, weights: Any, table: Any, channels: Any, columns: Any, output: Any, count: Any,
    height: Any, width: Any, stride: Any, dilation: Any, low: Any, high: Any, zero: Any,
) -> Any:  # fmt: skip
    """Return the signature and generator of an intrinsic for one output row of a depthwise convolution with any filter.

    It loops over the filter's `height` by `width` taps; `stride` and `dilation` are those along the width. The other arguments are
    those of `_outputs_code`; rows begin with their padding.
    """
    signature = types.void(bits, rounding, *[types.int64] * 14, *[types.float64] * 3)
    n_bits, how = bits.literal_value, rounding.literal_value

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        rows, vectors, first, last, weights, table, channels, columns, output, count = arguments[2:12]
        height, width, stride, dilation, low, high, zero = arguments[12:]
        size = n_bits // 8
        pixel, out_pixel = b.mul(vectors, I64(LANES * 4)), b.mul(columns, I64(size))
        together = windows_together()
        skipped = b.mul(first, I64(LANES))
        finish = Finish(b, n_bits, how, table, channels, low, high, zero, skipped)
        sums = [cgutils.alloca_once(b, ir.VectorType(F32, LANES)) for _ in range(together)]
        with cgutils.for_range(b, b.sub(last, first), intp=I64) as part:
            channel = b.mul(part.index, I64(LANES))
            at = b.mul(b.add(channel, skipped), I64(4))
            mask = mask_below(b, b.sub(b.sub(columns, skipped), channel))
            begin = finish.start(channel, False)
            target = b.add(output, b.mul(b.add(channel, skipped), I64(size)))

            def some(number: Any, many: int) -> None:
                """Emit the outputs of `many` neighbouring windows, the first of which has the number `number`."""
                for slot in sums[:many]:
                    b.store(begin, slot)
                start = b.add(at, b.mul(b.mul(number, stride), pixel))
                step = b.mul(stride, pixel)
                with cgutils.for_range(b, height, intp=I64) as i:
                    line = b.load(address(b, rows, b.mul(i.index, I64(8)), I64))
                    with cgutils.for_range(b, width, intp=I64) as j:
                        tap = b.add(b.mul(i.index, width), j.index)
                        factor = load(b, weights, b.add(at, b.mul(pixel, tap)), F32)
                        column = b.add(start, b.mul(b.mul(j.index, dilation), pixel))
                        for p, slot in enumerate(sums[:many]):
                            value = load(b, line, b.add(column, b.mul(step, I64(p))), F32)
                            b.store(multiply_add(b, value, factor, b.load(slot)), slot)
                for p, slot in enumerate(sums[:many]):
                    where = b.mul(b.add(number, I64(p)), out_pixel)
                    store(b, finish.outputs(b.load(slot), channel), target, where, mask)

            blocks = b.sdiv(count, I64(together))
            with cgutils.for_range(b, blocks, intp=I64) as block:
                some(b.mul(block.index, I64(together)), together)
            done = b.mul(blocks, I64(together))
            with cgutils.for_range(b, b.sub(count, done), intp=I64) as single:
                some(b.add(done, single.index), 1)
        return ctx.get_dummy_value()

    return signature, generate


#: Called in kernels with all arguments but the first, the typing context.
any_outputs: Any = intrinsic(prefer_literal=True)(_any_outputs_code)


def _pixels_code(context: Any, bits: Any, kind: Any, source: Any, target: Any, count: Any, depth: Any) -> Any:
    """Return the signature and generator of an intrinsic that converts `count` pixels of `depth` numbers to float32.

    Each pixel becomes whole vectors of sixteen floats, filled up with zeros. `bits` is the size of an input number; `kind` is 0
    for floats, 1 for signed and 2 for unsigned integers.
    """
    signature = types.void(bits, kind, *[types.int64] * 4)
    size, family = bits.literal_value // 8, kind.literal_value

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        source, target, count, depth = arguments[2:]
        scalar = {1: I8, 2: I16, 4: F32}[size]
        vectors = b.sdiv(b.add(depth, I64(LANES - 1)), I64(LANES))
        with cgutils.for_range(b, vectors, intp=I64) as part:
            channel = b.mul(part.index, I64(LANES))
            mask = mask_below(b, b.sub(depth, channel))
            read, written = (b.add(base, b.mul(channel, I64(wide))) for base, wide in ((source, size), (target, 4)))
            with cgutils.for_range(b, count, intp=I64) as pixel:
                values = load_some(b, read, b.mul(pixel.index, b.mul(depth, I64(size))), scalar, mask)
                if family:
                    values = (b.sitofp if family == 1 else b.uitofp)(values, ir.VectorType(F32, LANES))
                where = address(b, written, b.mul(b.mul(pixel.index, vectors), I64(LANES * 4)), values.type)
                b.store(values, where, align=4)
        return ctx.get_dummy_value()

    return signature, generate


#: Called in kernels with all arguments but the first, the typing context.
pixels: Any = intrinsic(prefer_literal=True)(_pixels_code)
