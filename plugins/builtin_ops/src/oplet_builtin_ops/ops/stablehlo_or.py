"""STABLEHLO_OR: elementwise bitwise OR; logical OR of booleans."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import LOGIC, binary

REGISTRATION = binary(np.bitwise_or, *LOGIC)
