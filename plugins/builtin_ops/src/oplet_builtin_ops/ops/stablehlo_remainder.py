"""STABLEHLO_REMAINDER: what a division that rounds towards zero leaves; it has the sign of the dividend.

Where StableHLO leaves it open, this is what XLA does: an integer divided by zero is left as it is.
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
