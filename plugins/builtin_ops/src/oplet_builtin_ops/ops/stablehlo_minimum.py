"""STABLEHLO_MINIMUM: the smaller of two values.

Numerics: tflite/kernels/stablehlo_elementwise.h
"""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.elementwise.stablehlo_elementwise import ARITHMETIC, litert_binary


def _minimum(a: Array, b: Array, target: Array) -> None:
    if a.dtype.kind != "f":
        np.minimum(a, b, out=target)
        return
    # LiteRT takes the second operand only if it is smaller, and so ignores a NaN there.
    np.copyto(target, a)
    np.copyto(target, b, where=np.less(b, a))


REGISTRATION = litert_binary(_minimum, *ARITHMETIC)
