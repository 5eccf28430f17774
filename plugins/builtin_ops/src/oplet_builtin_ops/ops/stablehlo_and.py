"""STABLEHLO_AND: bitwise AND, value by value; of booleans, whether both are true.

Numerics: tflite/kernels/stablehlo_elementwise.h
"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import LOGIC, litert_binary

REGISTRATION = litert_binary(np.bitwise_and, *LOGIC)
