"""STABLEHLO_TANH: the hyperbolic tangent."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import unary
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS

REGISTRATION = unary(np.tanh, *FLOATS, *COMPLEX)
