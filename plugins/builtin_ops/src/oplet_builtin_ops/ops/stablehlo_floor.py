"""STABLEHLO_FLOOR: each value rounded down."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import unary
from oplet_builtin_ops.stablehlo import FLOATS

REGISTRATION = unary(np.floor, *FLOATS)
