"""STABLEHLO_NEGATE: -x; integers wrap around."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import unary
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS

REGISTRATION = unary(np.negative, *FLOATS, *COMPLEX, *INTEGERS)
