"""STABLEHLO_DIVIDE: elementwise quotient; of integers, truncated.

Where StableHLO leaves the result open, it is XLA's: an integer divided by zero has all bits set.
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
    # Less the remainder, the dividend is a multiple of the divisor, so that rounding down is exact.
    np.floor_divide(a - np.fmod(a, divisor), divisor, target)
    np.copyto(target, ~target.dtype.type(0), where=by_zero)


REGISTRATION = binary(_divide, *FLOATS, *COMPLEX, *INTEGERS)
