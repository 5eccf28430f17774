"""Unary and binary elementwise kernels, and means over adjacent axes. Modules are grouped by how their loops walk over the
arrays, not by what they compute.
"""

from __future__ import annotations

__all__ = ["ADD", "MULTIPLY", "PRELU", "SQUARED_DIFFERENCE", "SUBTRACT", "SUBTRACT_FROM"]

#: What the kernels of `float_pairs` compute.
ADD, SUBTRACT, SUBTRACT_FROM, MULTIPLY, PRELU, SQUARED_DIFFERENCE = range(6)
