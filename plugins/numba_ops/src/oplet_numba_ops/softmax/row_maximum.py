"""The largest number of a row, by vector instructions: the compiler keeps the order of comparisons, because of NaN, and so one lane."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic

from oplet_numba_ops.compiling.vectors import F32, I32, I64, LANES, constant, load, load_some, mask_below

cgutils: Any = numba_cgutils  # it has no types

__all__ = ["largest"]

_LEAST = float("-inf")


def _largest_code(context: Any, start: Any, count: Any) -> Any:
    """Emit code that returns the largest of `count` float32 from an address on, -inf of none; NaN may be left out."""

    def generate(_: Any, b: ir.IRBuilder, __: Any, arguments: list[Any]) -> Any:
        start, count = arguments
        least = constant(_LEAST, F32)
        most = [cgutils.alloca_once_value(b, least) for _ in range(2)]

        def take(slot: Any, values: Any) -> None:
            before = b.load(slot)
            b.store(b.select(b.fcmp_ordered(">", values, before), values, before), slot)

        pairs = b.sdiv(count, I64(2 * LANES))
        with cgutils.for_range(b, pairs, intp=I64) as pair:
            at = b.mul(pair.index, I64(8 * LANES))
            for half, slot in enumerate(most):
                take(slot, load(b, start, b.add(at, I64(4 * LANES * half)), F32))
        done = b.mul(pairs, I64(2 * LANES))
        for half, slot in enumerate(most):
            first = b.add(done, I64(LANES * half))
            mask = mask_below(b, b.sub(count, first))
            take(slot, b.select(mask, load_some(b, start, b.mul(first, I64(4)), F32, mask), least))
        row, other = (b.load(slot) for slot in most)
        row = b.select(b.fcmp_ordered(">", row, other), row, other)
        lanes = LANES
        while lanes > 1:
            lanes //= 2
            turned = b.shuffle_vector(
                row, row, ir.Constant(ir.VectorType(I32, LANES), [(i + lanes) % LANES for i in range(LANES)])
            )
            row = b.select(b.fcmp_ordered(">", row, turned), row, turned)
        return b.extract_element(row, I32(0))

    return types.float32(types.int64, types.int64), generate


#: Called in kernels with all arguments but the first, the typing context.
largest: Any = intrinsic(_largest_code)
