"""STABLEHLO_POWER: the first operand to the power of the second, elementwise; integers wrap around.

A negative power of an integer is its reciprocal, truncated, and 0 for 0.
"""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.elementwise.stablehlo_elementwise import binary
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS


def _power(a: Array, b: Array, target: Array) -> None:
    if a.dtype.kind != "i":
        np.power(a, b, target)
        return
    negative = b < 0
    np.power(a, np.where(negative, b & 1, b), target)
    np.copyto(target, a.dtype.type(0), where=negative & (np.abs(a) != 1))
    np.copyto(target, a.dtype.type(1), where=negative & (a == 1))


REGISTRATION = binary(_power, *FLOATS, *COMPLEX, *INTEGERS)
