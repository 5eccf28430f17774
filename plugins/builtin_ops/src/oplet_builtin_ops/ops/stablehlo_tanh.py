"""STABLEHLO_TANH: the hyperbolic tangent."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS
from oplet_builtin_ops.stablehlo_elementwise import unary

REGISTRATION = unary(np.tanh, *FLOATS, *COMPLEX)
