"""LLVM IR building blocks for kernels: vectors of sixteen 32-bit lanes.

LLVM's own vectorizer makes loops either fast or ten times slower, which is hard to control. The inner loops of convolutions are
therefore emitted as vector code, which LLVM divides into the processor's registers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils

from oplet_compiled_ops.library import rounding
from oplet_compiled_ops.library.levels import LANES, current, has_masks

__all__ = ["LANES", "Finish", "address", "broadcast", "cgutils", "load", "load_some", "mask_below", "multiply_add", "store"]

cgutils: Any = numba_cgutils  # it has no types
I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
#: The names in LLVM's intrinsics of numbers that are loaded and stored in part, and their bytes.
_MASKED = {F32: ("f32", 4), I8: ("i8", 1), I16: ("i16", 2)}
#: The largest float64 below 0.5: with it, rounding by floor(x + 0.5) does not round numbers just below a half up.
_BELOW_HALF = 0.49999999999999994
#: 1.5 * 2**52: adding it rounds a float64 to an integer, which the lower half of the sum's bits then is.
_ROUNDER = 6755399441055744.0


def constant(value: Any, scalar: Any, lanes: int = LANES) -> ir.Constant:
    """Build a constant vector with `value` in all lanes."""
    return ir.Constant(ir.VectorType(scalar, lanes), [value] * lanes)


def address(builder: ir.IRBuilder, base: Any, offset: Any, pointee: Any) -> Any:
    """Emit a pointer to `pointee`, `offset` bytes after the integer address `base`."""
    pointer = builder.inttoptr(base, I8.as_pointer())
    return builder.bitcast(builder.gep(pointer, [offset]), pointee.as_pointer())


def load(builder: ir.IRBuilder, base: Any, offset: Any, scalar: Any, lanes: int = LANES) -> Any:
    """Emit a load of a vector of `lanes` numbers of type `scalar`, `offset` bytes after the address `base`; it needs no vector
    alignment.
    """
    kind = ir.VectorType(scalar, lanes) if lanes > 1 else scalar
    return builder.load(address(builder, base, offset, kind), align=4 if scalar in (F32, I32) else 8)


def broadcast(builder: ir.IRBuilder, scalar: Any, lanes: int = LANES) -> Any:
    """Emit a vector with a scalar in all lanes."""
    kind = ir.VectorType(scalar.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), constant(0, I32, lanes))


def _intrinsic(builder: ir.IRBuilder, name: str, result: Any, arguments: list[Any]) -> Any:
    module = builder.module
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(result, [a.type for a in arguments]), name)
    return builder.call(function, arguments)


def multiply_add(builder: ir.IRBuilder, a: Any, b: Any, c: Any) -> Any:
    """Emit a * b + c, as a fused multiply-add if the processor has it."""
    return _intrinsic(builder, f"llvm.fmuladd.v{LANES}f32", a.type, [a, b, c])


def dot_bytes(builder: ir.IRBuilder, unsigned: Any, signed: Any, total: Any) -> Any:
    """Emit `total` plus four byte products per 32-bit lane: of unsigned and signed bytes (AVX-512 VNNI's vpdpbusd), or of signed
    ones (aarch64's sdot), as the level has it.
    """
    if current().byte_products == "sdot":
        return _dot_signed(builder, unsigned, signed, total)
    kind = ir.FunctionType(total.type, [total.type] * 3)
    return builder.call(ir.InlineAsm(kind, "vpdpbusd $3, $2, $0", "=v,0,v,v", side_effect=False), [total, unsigned, signed])


def _dot_signed(builder: ir.IRBuilder, a: Any, b: Any, total: Any) -> Any:
    words, bytes_of, lanes = ir.VectorType(I32, 4), ir.VectorType(I8, 16), range(0, LANES, 4)
    parts = []
    for first in lanes:
        quads = [_lanes(builder, vector, first, 4) for vector in (total, a, b)]
        factors = [builder.bitcast(quad, bytes_of) for quad in quads[1:]]
        parts.append(_intrinsic(builder, "llvm.aarch64.neon.sdot.v4i32.v16i8", words, [quads[0], *factors]))
    halves = [_joined(builder, *parts[at : at + 2]) for at in (0, 2)]
    return _joined(builder, *halves)


def _lanes(builder: ir.IRBuilder, vector: Any, first: int, count: int) -> Any:
    """Emit some of a vector's lanes, `count` from lane `first` on."""
    lanes = ir.Constant(ir.VectorType(I32, count), list(range(first, first + count)))
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), lanes)


def _joined(builder: ir.IRBuilder, low: Any, high: Any) -> Any:
    """Emit a vector of the lanes of two others."""
    count = 2 * low.type.count
    return builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(I32, count), list(range(count))))


def dot_pairs(builder: ir.IRBuilder, a: Any, b: Any, total: Any) -> Any:
    """Emit `total` plus two products of 16-bit integers per 32-bit lane (AVX-512 VNNI's vpdpwssd); of `b`, the upper ones are 0."""
    if current().byte_products != "vpdpbusd":
        half = constant(16, I32)
        low = [builder.ashr(builder.shl(vector, half), half) for vector in (a, b)]
        return builder.add(total, builder.mul(*low))
    kind = ir.FunctionType(total.type, [total.type] * 3)
    return builder.call(ir.InlineAsm(kind, "vpdpwssd $3, $2, $0", "=v,0,v,v", side_effect=False), [total, a, b])


def mask_below(builder: ir.IRBuilder, count: Any) -> Any:
    """Emit a mask of the lanes whose index is below the 64-bit integer `count`."""
    numbers = ir.Constant(ir.VectorType(I32, LANES), list(range(LANES)))
    limit = builder.trunc(builder.select(builder.icmp_signed("<", count, I64(LANES)), count, I64(LANES)), I32)
    return builder.icmp_signed("<", numbers, broadcast(builder, limit))


def store(builder: ir.IRBuilder, value: Any, base: Any, offset: Any, mask: Any) -> None:
    """Emit a store of a vector, `offset` bytes after the address `base`; only the first lanes (set in `mask`) are written."""
    b, scalar = builder, value.type.element
    name, align = _MASKED[scalar]
    pointer = address(b, base, offset, value.type)

    def some(value: Any, mask: Any, pointer: Any, lanes: int) -> None:
        _intrinsic(b, f"llvm.masked.store.v{lanes}{name}.p0", ir.VoidType(), [value, pointer, I32(align), mask])

    if has_masks():
        some(value, mask, pointer, LANES)
        return
    # Elsewhere a masked store takes tens of cycles, or a branch for each lane.
    half = LANES // 2
    with b.if_else(_lane(b, mask, LANES - 1), likely=True) as (whole, partly):
        with whole:
            b.store(value, pointer, align=align)
        with partly:
            values, masks = ([_half(b, vector, first) for first in (0, half)] for vector in (value, mask))
            pointers = [
                b.bitcast(b.gep(b.bitcast(pointer, scalar.as_pointer()), [I64(i)]), values[0].type.as_pointer())
                for i in (0, half)
            ]
            with b.if_else(_lane(b, mask, half - 1)) as (lower, less):
                with lower:
                    b.store(values[0], pointers[0], align=align)
                    with b.if_then(_lane(b, mask, half)):
                        some(values[1], masks[1], pointers[1], half)
                with less:
                    some(values[0], masks[0], pointers[0], half)


def load_some(builder: ir.IRBuilder, base: Any, offset: Any, scalar: Any, mask: Any) -> Any:
    """Emit a load of a vector of which only the first lanes, those set in `mask`, are read from memory; the others are 0."""
    b, kind = builder, ir.VectorType(scalar, LANES)
    name, align = _MASKED[scalar]
    pointer = address(b, base, offset, kind)

    def some() -> Any:
        return _intrinsic(b, f"llvm.masked.load.v{LANES}{name}.p0", kind, [pointer, I32(align), mask, ir.Constant(kind, None)])

    if has_masks():
        return some()
    with b.if_else(_lane(b, mask, LANES - 1), likely=True) as (whole, partly):
        with whole:
            every, from_whole = b.load(pointer, align=align), b.block
        with partly:
            few, from_partly = some(), b.block
    found = b.phi(kind)
    found.add_incoming(every, from_whole)
    found.add_incoming(few, from_partly)
    return found


def _lane(builder: ir.IRBuilder, mask: Any, number: int) -> Any:
    return builder.extract_element(mask, I32(number))


def _half(builder: ir.IRBuilder, vector: Any, first: int) -> Any:
    """Emit the lower or upper half of a vector's lanes, from lane `first` on."""
    return _lanes(builder, vector, first, LANES // 2)


class Finish:
    """Emits a layer's output stage on its accumulators: clamp for floats, requantization for integers.

    Integers are scaled by `oplet.kernels.requantization`'s formula, floor(sum * factor + threshold). The threshold is a half,
    plus what the first of the format's two roundings adds for sums above zero, or minus what it takes away for sums below.

    Args:
        builder: llvmlite's IR builder.
        bits: the bits of an output: 32 for floats, 8 or 16 for integers.
        rounding: the rounding of integers, one of this class's constants.
        table: the address of per-channel values: the 32-bit numbers that sums begin with (a float's bias, an integer's offset),
            and for integers three rows of float64: factors, thresholds above zero, thresholds below zero.
        channels: the entries of each row of the table, a multiple of the lanes.
        low: the smallest output; a float64, like `high` and `zero`.
        high: the largest output.
        zero: the output's zero point, which is added last.
        skipped: the number of channels at the beginning of the table's rows that are not computed; None for none.
    """

    #: No rounding: floats are clamped.
    CLAMPED = rounding.CLAMPED
    #: Thresholds are reduced by almost a half, so that rounding to nearest gives the floor.
    NEAREST = rounding.NEAREST
    #: As NEAREST, where negative outputs are clamped, so that their rounding does not matter.
    NEAREST_ABOVE = rounding.NEAREST_ABOVE
    #: `floor` before the zero point is added, for sums that are not exact in float64 together with it.
    FLOOR = rounding.FLOOR
    #: One rounding, halves away from zero.
    AWAY = rounding.AWAY

    def __init__(
        self,
        builder: ir.IRBuilder,
        bits: int,
        rounding: int,
        table: Any,
        channels: Any,
        low: Any,
        high: Any,
        zero: Any,
        skipped: Any = None,
    ) -> None:
        self.builder, self.bits, self.rounding = builder, bits, rounding
        self.table, self.row = builder.add(table, builder.mul(channels, I64(4))), builder.mul(channels, I64(8))
        self.starts = table
        if skipped is not None:
            self.table = builder.add(self.table, builder.mul(skipped, I64(8)))
            self.starts = builder.add(table, builder.mul(skipped, I64(4)))
        if bits == 32:
            bounds = builder.fptrunc(low, F32), builder.fptrunc(high, F32), builder.fptrunc(zero, F32)
        else:
            bounds = builder.fptosi(low, I32), builder.fptosi(high, I32), builder.fptosi(zero, I32)
        self.low, self.high, self.zero = (broadcast(builder, value) for value in bounds)
        self.rounder = broadcast(builder, builder.fadd(zero, F64(_ROUNDER)))

    def start(self, channel: Any, integer: bool) -> Any:
        """Emit the values with which the sums of sixteen channels, from `channel` on, begin: floats' biases, or int32 offsets if
        `integer`.
        """
        return load(self.builder, self.starts, self.builder.mul(channel, I64(4)), I32 if integer else F32)

    def _value(self, row: int, channel: Any) -> Any:
        b = self.builder
        return load(b, self.table, b.add(b.mul(self.row, I64(row)), b.mul(channel, I64(8))), F64)

    def outputs(self, total: Any, channel: Any) -> Any:
        """Emit the outputs of sixteen channels, from `channel` on, from their accumulators `total`."""
        b = self.builder
        if self.bits == 32:
            # NaN is kept.
            total = b.select(b.fcmp_ordered("<", total, self.low), self.low, total)
            return b.select(b.fcmp_ordered(">", total, self.high), self.high, total)
        wide = ir.VectorType(F64, LANES)
        integer = total.type.element == I32
        product = b.sitofp(total, wide) if integer else b.fpext(total, wide), self._value(0, channel)
        negative = b.icmp_signed("<", total, constant(0, I32)) if integer else b.fcmp_ordered("<", total, constant(0.0, F32))
        if self.rounding == self.AWAY:
            u = b.fadd(b.fmul(*product), b.select(negative, constant(-_BELOW_HALF, F64), constant(_BELOW_HALF, F64)))
        else:
            threshold = self._value(1, channel)
            if self.rounding != self.NEAREST_ABOVE:
                threshold = b.select(negative, self._value(2, channel), threshold)
            # Without a clamp the arithmetic is exact, in one step or in two.
            u = _intrinsic(b, f"llvm.fmuladd.v{LANES}f64", wide, [*product, threshold])
        if self.rounding in (self.NEAREST, self.NEAREST_ABOVE):
            bits = b.bitcast(b.fadd(u, self.rounder), ir.VectorType(I32, 2 * LANES))
            low_halves = ir.Constant(ir.VectorType(I32, LANES), list(range(0, 2 * LANES, 2)))
            whole = b.shuffle_vector(bits, ir.Constant(bits.type, ir.Undefined), low_halves)
        else:
            if self.rounding == self.FLOOR:
                u = _intrinsic(b, f"llvm.floor.v{LANES}f64", wide, [u])
            whole = b.add(b.fptosi(u, ir.VectorType(I32, LANES)), self.zero)
        whole = b.select(b.icmp_signed("<", whole, self.low), self.low, whole)
        whole = b.select(b.icmp_signed(">", whole, self.high), self.high, whole)
        return b.trunc(whole, ir.VectorType(I8 if self.bits == 8 else I16, LANES))
