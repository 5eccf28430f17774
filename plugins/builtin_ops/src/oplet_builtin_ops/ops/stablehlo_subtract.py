"""STABLEHLO_SUBTRACT: the difference, value by value; integers wrap around."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import binary
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS

REGISTRATION = binary(np.subtract, *FLOATS, *COMPLEX, *INTEGERS)
