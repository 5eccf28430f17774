"""PRELU of quantized numbers: values from 0 on are rescaled by one factor, products of negative ones with alpha by another."""

from __future__ import annotations

from oplet import TensorType
from oplet_compiled_ops.elementwise.fixed_point import scaled
from oplet_compiled_ops.elementwise.plain.plain_pairs import HOW
from oplet_compiled_ops.library.kernels import Kernel

__all__ = ["QUANTIZED_PRELU"]


def _prelu(x, y, out, blocks, rows, columns, advance, per_row, numbers):  # type: ignore[no-untyped-def]
    zero_x, zero_y, zero, low, high = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    m, left, half, below, right = numbers[5], numbers[6], numbers[7], numbers[8], numbers[9]
    other_m, other_left, other_half, other_below, other_right = numbers[10], numbers[11], numbers[12], numbers[13], numbers[14]
    for block in range(blocks):
        for row in range(rows):
            start = (block * rows + row) * columns
            first = block * advance + (row if per_row else 0)
            for i in range(columns):
                value = x[start + i] - zero_x
                if value >= 0:
                    result = scaled(value, m, left, half, below, right)
                else:
                    value *= y[first if per_row else first + i] - zero_y
                    result = scaled(value, other_m, other_left, other_half, other_below, other_right)
                out[start + i] = min(max(result + zero, low), high)


#: By the type of the numbers. Of int16, alpha's bytes are read as int8.
QUANTIZED_PRELU = {
    type: Kernel(_prelu, f"void({code}[::1], {alpha}[::1], {code}[::1], {HOW}, i8[::1])")
    for type, code, alpha in ((TensorType.INT8, "i1", "i1"), (TensorType.UINT8, "u1", "u1"), (TensorType.INT16, "i2", "i1"))
}
