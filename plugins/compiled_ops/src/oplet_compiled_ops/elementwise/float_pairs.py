"""Binary operations of float32, such as ADD, PRELU and MAXIMUM, with a broadcast second operand and fused clamp, in one pass.

Their kernels are declared in `flat`, where their arguments are written.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import built_with
from oplet_compiled_ops.library.lazy import inlined

__all__ = ["float_pair_kernel"]

_ZERO = np.float32(0)

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


@built_with(lambda: product(range(12), (False, True)))
def float_pair_kernel(op: int, per_row: bool) -> Callable[..., None]:
    """Return the function of an operation whose smaller operand has one number per row of the larger one, or a row of numbers."""

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

    return of_numbers if per_row else of_rows
