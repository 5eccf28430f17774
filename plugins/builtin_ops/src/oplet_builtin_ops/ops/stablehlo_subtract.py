"""STABLEHLO_SUBTRACT: the difference, value by value; integers wrap around."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS
from oplet_builtin_ops.stablehlo_elementwise import binary

REGISTRATION = binary(np.subtract, *FLOATS, *COMPLEX, *INTEGERS)
