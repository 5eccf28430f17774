"""Binary operations of float32, such as ADD, PRELU and MAXIMUM, with a broadcast second operand and fused clamp, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from oplet import Tensor
from oplet_compiled_ops.elementwise.plain.broadcasting import Repetition
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.library.memory import Array, flat
from oplet_compiled_ops.overriding import Thunk
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut_pair
from oplet_compiled_ops.threads.team import Step, thunk

__all__ = ["bind_float_pair", "float_pair_kernel"]

_ZERO = np.float32(0)
#: Shorter rows are repeated into longer ones, so that the overhead of a loop over a row is small.
_LONG = 512

_value_of: Callable[..., Any] = inlined(inline="always", error_model="numpy", boundscheck=False)
_inlined: Callable[..., Any] = inlined(inline="never", error_model="numpy", boundscheck=False, nogil=True)


@_value_of
def _clamped(value, low, high):  # type: ignore[no-untyped-def]
    # NaN is kept.
    value = low if value < low else value
    return high if value > high else value


@_value_of
def _value(op, x, y, low, high):  # type: ignore[no-untyped-def]
    if op == 0:
        return _clamped(x + y, low, high)
    if op == 1:
        return _clamped(x - y, low, high)
    if op == 2:
        return _clamped(y - x, low, high)
    if op == 3:
        return _clamped(x * y, low, high)
    if op == 4:
        return x if x >= _ZERO else x * y
    if op == 5:
        return (x - y) * (x - y)
    if op == 6:
        return _clamped(x / y, low, high)
    if op == 7:
        return _clamped(y / x, low, high)
    if op == 8:
        return x if x > y else y
    if op == 9:
        return y if y > x else x
    if op == 10:
        return x if x < y else y
    return y if y < x else x


@family(lambda: product(range(12), (False, True)))
def float_pair_kernel(op: int, per_row: bool) -> Kernel:
    """Build the kernel of an operation whose smaller operand has one number per row of the larger one, or a row of numbers."""

    # In-place loops have one array less, as loops over two arrays of the same memory would not be vectorized.

    @_inlined
    def line(x, y, out, low, high):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = _value(op, x[i], y[i], low, high)

    @_inlined
    def line_over(y, out, low, high):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = _value(op, out[i], y[i], low, high)

    @_inlined
    def line_of_one(x, y, out, low, high):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = _value(op, x[i], y, low, high)

    @_inlined
    def line_over_one(y, out, low, high):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = _value(op, out[i], y, low, high)

    def of_numbers(x, y, out, scratch, blocks, rows, columns, advance, low, high):  # type: ignore[no-untyped-def]
        over = x.ctypes.data == out.ctypes.data
        for block in range(blocks):
            for row in range(rows):
                start = (block * rows + row) * columns
                at = slice(start, start + columns)
                if over:
                    line_over_one(y[row], out[at], low, high)
                else:
                    line_of_one(x[at], y[row], out[at], low, high)

    def of_rows(x, y, out, scratch, blocks, rows, columns, advance, low, high):  # type: ignore[no-untyped-def]
        over = x.ctypes.data == out.ctypes.data
        size, length = rows * columns, scratch.size
        for block in range(blocks):
            other = y[block * advance : block * advance + columns]
            if length and (block == 0 or advance > 0):
                for start in range(0, length, columns):
                    for i in range(columns):
                        scratch[start + i] = other[i]
            if length:
                other = scratch
            for start in range(block * size, (block + 1) * size, other.size):
                at = slice(start, min(start + other.size, (block + 1) * size))
                if over:
                    line_over(other, out[at], low, high)
                else:
                    line(x[at], other, out[at], low, high)

    return Kernel(of_numbers if per_row else of_rows, "void(f4[::1], f4[::1], f4[::1], f4[::1], i8, i8, i8, i8, f4, f4)")


def bind_float_pair(
    op: int,
    x: Tensor,
    y: Array,
    output: Tensor,
    how: Repetition,
    low: float,
    high: float,
    threads: int,
    before: Sequence[Step] = (),
) -> Thunk:
    """Return a function that computes a binary operation on float32 operands and clamps the results.

    Args:
        op: one of the constants of `elementwise`.
        x: the operand of the output's shape; the output may be in its memory.
        y: the operand that repeats.
        output: the output.
        how: how `y` repeats over `x`.
        low: the lower bound of the clamp, which sums, differences, products and quotients have.
        high: the upper bound of the clamp.
        threads: the threads that share the work.
        before: steps to run first, which write operands.
    """
    large, small, result = flat(x.data), flat(y), flat(output.data)
    parts = []
    for part, whole, some in cut_pair(how, threads, WORTH_VALUES):
        copies = 0 if part.per_row or part.rows == 1 or part.columns >= _LONG else min(part.rows, -(-_LONG // part.columns))
        scratch = np.empty(copies * part.columns, np.float32)
        arrays = large[slice(*whole)], small[slice(*some)], result[slice(*whole)], scratch
        parts.append((*arrays, part.blocks, part.rows, part.columns, part.advance, low, high))
    return thunk([*before, Step(float_pair_kernel(op, how.per_row), parts)], threads, x.data, *arrays)
