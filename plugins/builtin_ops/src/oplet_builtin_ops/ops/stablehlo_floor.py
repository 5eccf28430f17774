"""STABLEHLO_FLOOR: each value rounded down."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.stablehlo import FLOATS
from oplet_builtin_ops.stablehlo_elementwise import unary

REGISTRATION = unary(np.floor, *FLOATS)
