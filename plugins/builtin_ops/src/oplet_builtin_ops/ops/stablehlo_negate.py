"""STABLEHLO_NEGATE: each value with its sign changed; integers wrap around."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS
from oplet_builtin_ops.stablehlo_elementwise import unary

REGISTRATION = unary(np.negative, *FLOATS, *COMPLEX, *INTEGERS)
