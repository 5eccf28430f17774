"""STABLEHLO_DIVIDE: the quotient, value by value; of integers, rounded towards zero.

Where StableHLO leaves it open, this is what XLA does: an integer divided by zero has all bits set.
"""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.elementwise.stablehlo_elementwise import binary
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS


def _divide(a: Array, b: Array, target: Array) -> None:
    if a.dtype.kind not in "iu":
        np.divide(a, b, target)
        return
    by_zero = b == 0
    divisor = np.where(by_zero, b.dtype.type(1), b)
    # What is left without the remainder divides evenly, so that rounding down does no harm.
    np.floor_divide(a - np.fmod(a, divisor), divisor, target)
    np.copyto(target, ~target.dtype.type(0), where=by_zero)


REGISTRATION = binary(_divide, *FLOATS, *COMPLEX, *INTEGERS)
