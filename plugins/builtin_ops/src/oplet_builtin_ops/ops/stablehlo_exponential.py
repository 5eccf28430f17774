"""STABLEHLO_EXPONENTIAL: e to the power of each value."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import unary
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS

REGISTRATION = unary(np.exp, *FLOATS, *COMPLEX)
