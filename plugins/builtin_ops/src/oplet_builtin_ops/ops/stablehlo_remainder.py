"""STABLEHLO_REMAINDER: the remainder of a truncated division; it has the sign of the dividend.

Where StableHLO leaves the result open, it is XLA's: the remainder of an integer divided by zero is the integer.
"""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.elementwise.stablehlo_elementwise import binary
from oplet_builtin_ops.stablehlo import FLOATS, INTEGERS


def _remainder(a: Array, b: Array, target: Array) -> None:
    np.fmod(a, b, target)
    if a.dtype.kind in "iu":
        np.copyto(target, a, where=b == 0)


REGISTRATION = binary(_remainder, *FLOATS, *INTEGERS)
