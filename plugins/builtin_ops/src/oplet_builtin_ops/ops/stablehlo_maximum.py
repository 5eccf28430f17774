"""STABLEHLO_MAXIMUM: the larger of two values.

Numerics: tflite/kernels/stablehlo_elementwise.h
"""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.elementwise.stablehlo_elementwise import ARITHMETIC, litert_binary


def _maximum(a: Array, b: Array, target: Array) -> None:
    if a.dtype.kind != "f":
        np.maximum(a, b, out=target)
        return
    # LiteRT takes the second operand only if it is larger, and so ignores a NaN there.
    np.copyto(target, a)
    np.copyto(target, b, where=np.less(a, b))


REGISTRATION = litert_binary(_maximum, *ARITHMETIC)
