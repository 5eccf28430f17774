"""ADD, SUB and MUL of quantized operands with a broadcast second operand, in one pass; their kernels are declared in `flat`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.elementwise.fixed_point import scaled
from oplet_compiled_ops.library.lazy import inlined

_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False, nogil=True)


@_inlined
def _sum_row(x, y, out, p):  # type: ignore[no-untyped-def]
    # The constants are read before the loop, so that the compiler knows that no output overwrites them.
    zero_x, m_x, left_x, half_x, below_x, right_x, sign_x = np.int32(p[0]), np.int32(p[1]), p[2], p[3], p[4], p[5], p[6]
    zero_y, m_y, left_y, half_y, below_y, right_y, sign_y = np.int32(p[7]), np.int32(p[8]), p[9], p[10], p[11], p[12], p[13]
    m, left, half, below, right, zero, low, high = np.int32(p[14]), p[15], p[16], p[17], p[18], p[19], p[20], p[21]
    for i in range(out.size):
        first = scaled(np.int64(np.int32(x[i]) - zero_x), np.int64(m_x), left_x, half_x, below_x, right_x)
        second = scaled(np.int64(np.int32(y[i]) - zero_y), np.int64(m_y), left_y, half_y, below_y, right_y)
        total = np.int64(np.int32(((first ^ sign_x) - sign_x) + ((second ^ sign_y) - sign_y)))
        out[i] = min(max(scaled(total, np.int64(m), left, half, below, right) + zero, low), high)


@_inlined
def _sum_row_of_one(x, y, out, p):  # type: ignore[no-untyped-def]
    zero_x, m_x, left_x, half_x, below_x, right_x, sign_x = np.int32(p[0]), np.int32(p[1]), p[2], p[3], p[4], p[5], p[6]
    m, left, half, below, right, zero, low, high = np.int32(p[14]), p[15], p[16], p[17], p[18], p[19], p[20], p[21]
    second = (scaled(np.int64(np.int32(y) - np.int32(p[7])), p[8], p[9], p[10], p[11], p[12]) ^ p[13]) - p[13]
    for i in range(out.size):
        first = scaled(np.int64(np.int32(x[i]) - zero_x), np.int64(m_x), left_x, half_x, below_x, right_x)
        total = np.int64(np.int32(((first ^ sign_x) - sign_x) + second))
        out[i] = min(max(scaled(total, np.int64(m), left, half, below, right) + zero, low), high)


@_inlined
def _product_row(x, y, out, p):  # type: ignore[no-untyped-def]
    zero_x, zero_y, m, left, half, below, right = np.int32(p[0]), np.int32(p[1]), np.int32(p[2]), p[3], p[4], p[5], p[6]
    zero, low, high = p[7], p[8], p[9]
    for i in range(out.size):
        product = np.int64(np.int32((np.int32(x[i]) - zero_x) * (np.int32(y[i]) - zero_y)))
        out[i] = min(max(scaled(product, np.int64(m), left, half, below, right) + zero, low), high)


@_inlined
def _product_row_of_one(x, y, out, p):  # type: ignore[no-untyped-def]
    zero_x, other, m, left, half, below, right = (
        np.int32(p[0]),
        np.int32(y) - np.int32(p[1]),
        np.int32(p[2]),
        p[3],
        p[4],
        p[5],
        p[6],
    )
    zero, low, high = p[7], p[8], p[9]
    for i in range(out.size):
        product = np.int64(np.int32((np.int32(x[i]) - zero_x) * other))
        out[i] = min(max(scaled(product, np.int64(m), left, half, below, right) + zero, low), high)


def _per_row(product, x, y, out, scratch, constants, blocks, rows, columns, advance):  # type: ignore[no-untyped-def]
    for block in range(blocks):
        for row in range(rows):
            start = (block * rows + row) * columns
            at = slice(start, start + columns)
            if product:
                _product_row_of_one(x[at], y[row], out[at], constants)
            else:
                _sum_row_of_one(x[at], y[row], out[at], constants)


def _per_column(product, x, y, out, scratch, constants, blocks, rows, columns, advance):  # type: ignore[no-untyped-def]
    size = rows * columns
    length = scratch.size
    for block in range(blocks):
        for start in range(0, length, columns):
            for i in range(columns):
                scratch[start + i] = y[block * advance + i]
        step = length if length else columns
        for start in range(block * size, (block + 1) * size, step):
            at = slice(start, min(start + step, (block + 1) * size))
            other = scratch if length else y[block * advance : block * advance + columns]
            if product:
                _product_row(x[at], other, out[at], constants)
            else:
                _sum_row(x[at], other, out[at], constants)
