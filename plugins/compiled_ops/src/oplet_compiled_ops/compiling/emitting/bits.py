"""Differing bits of words, counted in vectors of sixteen counters."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import I32, I64, LANES, address, broadcast, cgutils, load

__all__ = ["differing"]


def _differing_code(typing_context, source, words, filters, counts):  # type: ignore[no-untyped-def]
    """Return the signature and generator of an intrinsic that compares `words` words with as many words of each of sixteen
    filters, and adds the number of bits in which they differ to sixteen int32 counters.

    All arguments but `words` are addresses; a word of all filters is followed by the next word of all filters.
    """

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        source, words, filters, counts = arguments
        kind = ir.VectorType(I32, LANES)
        name = f"llvm.ctpop.v{LANES}i32"
        count = b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(kind, [kind]), name)
        total = cgutils.alloca_once(b, kind)
        b.store(load(b, counts, I64(0), I32), total)
        with cgutils.for_range(b, words, intp=I64) as word:
            value = b.load(address(b, source, b.mul(word.index, I64(4)), I32), align=4)
            theirs = load(b, filters, b.mul(word.index, I64(4 * LANES)), I32)
            b.store(b.add(b.load(total), b.call(count, [b.xor(broadcast(b, value), theirs)])), total)
        b.store(b.load(total), address(b, counts, I64(0), kind), align=4)
        return ctx.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


#: Called in kernels with all arguments but the first, the typing context.
differing: Any = intrinsic(_differing_code)
