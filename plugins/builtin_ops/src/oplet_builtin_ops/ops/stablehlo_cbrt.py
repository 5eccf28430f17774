"""STABLEHLO_CBRT: the cube root."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.stablehlo import FLOATS
from oplet_builtin_ops.stablehlo_elementwise import unary

REGISTRATION = unary(np.cbrt, *FLOATS)
