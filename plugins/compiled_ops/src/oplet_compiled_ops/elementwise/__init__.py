"""Unary and binary elementwise kernels, and means over adjacent axes. Modules are grouped by how their loops walk over the
arrays, not by what they compute.
"""

from __future__ import annotations

from oplet import TensorType

#: What the kernels of `float_pairs` compute: SUBTRACT_FROM is y - x. Each one from DIVIDE on is followed by the same of exchanged operands;
#: of two numbers, one of which is NaN, LARGER and SMALLER give the second.
ADD, SUBTRACT, SUBTRACT_FROM, MULTIPLY, PRELU, SQUARED_DIFFERENCE = range(6)
DIVIDE, DIVIDE_INTO, LARGER, LARGER_FIRST, SMALLER, SMALLER_FIRST = range(6, 12)

#: The quantized types, and how signatures of kernels name them.
CODES = {TensorType.INT8: "i1", TensorType.UINT8: "u1", TensorType.INT16: "i2"}
