"""ADD, SUB, MUL, PRELU and SQUARED_DIFFERENCE of float32 with a broadcast second operand and fused clamp, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Tensor
from oplet_compiled_ops.elementwise import ADD, MULTIPLY, PRELU, SQUARED_DIFFERENCE, SUBTRACT, SUBTRACT_FROM
from oplet_compiled_ops.elementwise.plain.broadcasting import Repetition
from oplet_compiled_ops.library.kernels import Kernel, kernel
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.library.memory import Array, flat
from oplet_compiled_ops.overriding import Thunk
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut_pair
from oplet_compiled_ops.threads.team import Step, thunk

__all__ = ["ADD", "MULTIPLY", "PRELU", "SQUARED_DIFFERENCE", "SUBTRACT", "SUBTRACT_FROM", "bind_float_pair", "float_pair_kernel"]

_ZERO = np.float32(0)
#: Shorter rows are repeated into longer ones, so that the overhead of a loop over a row is small.
_LONG = 512

_inlined: Callable[..., Any] = inlined(inline="never", error_model="numpy", boundscheck=False, nogil=True)


@_inlined
def _clamped(value, low, high):  # type: ignore[no-untyped-def]
    # NaN is kept.
    value = low if value < low else value
    return high if value > high else value


@_inlined
def _row(op, x, y, out, low, high):  # type: ignore[no-untyped-def]
    n = out.size
    if op == 0:
        for i in range(n):
            out[i] = _clamped(x[i] + y[i], low, high)
    elif op == 1:
        for i in range(n):
            out[i] = _clamped(x[i] - y[i], low, high)
    elif op == 2:
        for i in range(n):
            out[i] = _clamped(y[i] - x[i], low, high)
    elif op == 3:
        for i in range(n):
            out[i] = _clamped(x[i] * y[i], low, high)
    elif op == 4:
        for i in range(n):
            out[i] = x[i] if x[i] >= _ZERO else x[i] * y[i]
    else:
        for i in range(n):
            out[i] = (x[i] - y[i]) * (x[i] - y[i])


@_inlined
def _row_of_one(op, x, y, out, low, high):  # type: ignore[no-untyped-def]
    n = out.size
    if op == 0:
        for i in range(n):
            out[i] = _clamped(x[i] + y, low, high)
    elif op == 1:
        for i in range(n):
            out[i] = _clamped(x[i] - y, low, high)
    elif op == 2:
        for i in range(n):
            out[i] = _clamped(y - x[i], low, high)
    elif op == 3:
        for i in range(n):
            out[i] = _clamped(x[i] * y, low, high)
    elif op == 4:
        for i in range(n):
            out[i] = x[i] if x[i] >= _ZERO else x[i] * y
    else:
        for i in range(n):
            out[i] = (x[i] - y) * (x[i] - y)


# In-place loops have one array less, as loops over two arrays of the same memory would not be vectorized.


@_inlined
def _row_over(op, y, out, low, high):  # type: ignore[no-untyped-def]
    n = out.size
    if op == 0:
        for i in range(n):
            out[i] = _clamped(out[i] + y[i], low, high)
    elif op == 1:
        for i in range(n):
            out[i] = _clamped(out[i] - y[i], low, high)
    elif op == 2:
        for i in range(n):
            out[i] = _clamped(y[i] - out[i], low, high)
    elif op == 3:
        for i in range(n):
            out[i] = _clamped(out[i] * y[i], low, high)
    elif op == 4:
        for i in range(n):
            out[i] = out[i] if out[i] >= _ZERO else out[i] * y[i]
    else:
        for i in range(n):
            out[i] = (out[i] - y[i]) * (out[i] - y[i])


@_inlined
def _row_over_one(op, y, out, low, high):  # type: ignore[no-untyped-def]
    n = out.size
    if op == 0:
        for i in range(n):
            out[i] = _clamped(out[i] + y, low, high)
    elif op == 1:
        for i in range(n):
            out[i] = _clamped(out[i] - y, low, high)
    elif op == 2:
        for i in range(n):
            out[i] = _clamped(y - out[i], low, high)
    elif op == 3:
        for i in range(n):
            out[i] = _clamped(out[i] * y, low, high)
    elif op == 4:
        for i in range(n):
            out[i] = out[i] if out[i] >= _ZERO else out[i] * y
    else:
        for i in range(n):
            out[i] = (out[i] - y) * (out[i] - y)


@kernel("void(i8, f4[::1], f4[::1], f4[::1], f4[::1], i8, i8, i8, i8, f4, f4)")
def _same_per_row(op, x, y, out, scratch, blocks, rows, columns, advance, low, high):  # type: ignore[no-untyped-def]
    over = x.ctypes.data == out.ctypes.data
    for block in range(blocks):
        for row in range(rows):
            start = (block * rows + row) * columns
            at = slice(start, start + columns)
            if over:
                _row_over_one(op, y[row], out[at], low, high)
            else:
                _row_of_one(op, x[at], y[row], out[at], low, high)


@kernel("void(i8, f4[::1], f4[::1], f4[::1], f4[::1], i8, i8, i8, i8, f4, f4)")
def _same_per_column(op, x, y, out, scratch, blocks, rows, columns, advance, low, high):  # type: ignore[no-untyped-def]
    over = x.ctypes.data == out.ctypes.data
    size = rows * columns
    if scratch.size == 0 or rows == 1:
        for block in range(blocks):
            for row in range(rows):
                start = block * size + row * columns
                first = block * advance
                at = slice(start, start + columns)
                if over:
                    _row_over(op, y[first : first + columns], out[at], low, high)
                else:
                    _row(op, x[at], y[first : first + columns], out[at], low, high)
        return
    length = scratch.size
    for block in range(blocks):
        if block == 0 or advance > 0:
            for start in range(0, length, columns):
                for i in range(columns):
                    scratch[start + i] = y[block * advance + i]
        for start in range(block * size, (block + 1) * size, length):
            at = slice(start, min(start + length, (block + 1) * size))
            if over:
                _row_over(op, scratch, out[at], low, high)
            else:
                _row(op, x[at], scratch, out[at], low, high)


def float_pair_kernel(how: Repetition) -> Kernel:
    """Return the kernel for all operations of this module, for a broadcasting pattern: one number of the smaller operand per row,
    or a row.
    """
    return _same_per_row if how.per_row else _same_per_column


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
        op: ADD, SUBTRACT, SUBTRACT_FROM (y - x), MULTIPLY, PRELU or SQUARED_DIFFERENCE.
        x: the operand of the output's shape; the output may be in its memory.
        y: the operand that repeats.
        output: the output.
        how: how `y` repeats over `x`.
        low: the lower bound of the clamp; the last two operations do not clamp.
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
        parts.append((op, *arrays, part.blocks, part.rows, part.columns, part.advance, low, high))
    return thunk([*before, Step(float_pair_kernel(how), parts)], threads, x.data, *arrays)
