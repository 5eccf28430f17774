"""Maps of float32 by instructions of AVX-512 that no loop is compiled to: logistic functions and inverse roots, as XNNPACK has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import (
    F32,
    I32,
    I64,
    LANES,
    constant,
    load_some,
    mask_below,
    multiply_add,
    store,
)
from oplet_compiled_ops.library.levels import current

cgutils: Any = numba_cgutils  # it has no types

__all__ = ["inverse_root", "inverse_roots", "logistics"]

_FLOATS, _INTEGERS = ir.VectorType(F32, LANES), ir.VectorType(I32, LANES)
#: 1.5 * 2**18: a sum with it has 5 bits after the point.
_ROUNDER, _LOG2_E = 393216.0, float(np.float32(np.log2(np.e)))
_LN2_HIGH, _LN2_LOW = float.fromhex("-0x1.62e43p-1"), float.fromhex("0x1.05c61p-29")
_C1, _LOWEST = float.fromhex("0x1.0000f6p0"), float.fromhex("-0x1.5d589ep6")
#: 2**(i / 32).
_POWERS = [ir.Constant(_FLOATS, [float(np.float32(2 ** (i / 32))) for i in range(at, at + LANES)]) for at in (0, LANES)]


def _assembled(b: ir.IRBuilder, text: str, constraints: str, *arguments: Any) -> Any:
    kind = arguments[0].type
    return b.call(
        ir.InlineAsm(ir.FunctionType(kind, [a.type for a in arguments]), text, constraints, side_effect=False), arguments
    )


def _has_estimates() -> bool:
    """Return whether the processor has AVX-512's estimates, permutations and powers."""
    return current().name.startswith("x86-64-v4")


def _inverse_root(b: ir.IRBuilder, x: Any) -> Any:
    """Emit 1 / sqrt(x) of a number or a vector; with AVX-512 an estimate and a Newton step; infinity of 0."""
    wide = isinstance(x.type, ir.VectorType)
    one, half, infinite, zero = (constant(v, F32) if wide else F32(v) for v in (1.0, 0.5, float("inf"), 0.0))
    if not _has_estimates():
        return b.fdiv(one, b.call(b.module.declare_intrinsic("llvm.sqrt", [x.type]), [x]))
    y = _assembled(b, "vrsqrt14ps $1, $0" if wide else "vrsqrt14ss $1, $1, $0", "=v,v", x)
    step = b.fmul(b.fsub(b.fmul(x, b.fmul(y, y)), one), b.fmul(half, y))
    found = b.select(b.fcmp_ordered("==", x, infinite), zero, b.fsub(y, step))
    return b.select(b.fcmp_ordered("==", x, zero), y, found)


def _inverse_root_code(context: Any, value: Any) -> Any:
    return types.float32(types.float32), lambda _, b, __, arguments: _inverse_root(b, arguments[0])


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
inverse_root: Any = intrinsic(_inverse_root_code)
inverse_roots: Any = _mapped(_inverse_root)
logistics: Any = _mapped(_logistic)
