"""STABLEHLO_LOGISTIC: 1 / (1 + exp(-x))."""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.elementwise.stablehlo_elementwise import in_single_precision, unary
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS


def _logistic(source: Array, target: Array) -> None:
    np.negative(source, target)
    np.exp(target, target)
    np.add(target, target.dtype.type(1), target)
    np.divide(target.dtype.type(1), target, target)


REGISTRATION = unary(in_single_precision(_logistic), *FLOATS, *COMPLEX)
