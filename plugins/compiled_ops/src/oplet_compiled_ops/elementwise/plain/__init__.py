"""Binary ops on unquantized numbers: comparisons, integer arithmetic, logic, divisions. Quantized numbers are compared by tables."""

from __future__ import annotations

__all__ = ["DIFFERENCE", "DIFFERENCE_FROM", "LARGER", "PRODUCT", "SHIFTED", "SHIFTED_BY", "SMALLER", "SUM", "XOR"]

#: Arithmetic; the difference, and the shift to the right, are followed by those with their operands exchanged.
SUM, DIFFERENCE, DIFFERENCE_FROM, PRODUCT, LARGER, SMALLER, XOR, SHIFTED, SHIFTED_BY = range(9)
