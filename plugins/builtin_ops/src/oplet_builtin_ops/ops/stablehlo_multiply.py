"""STABLEHLO_MULTIPLY: the product, value by value; of booleans, whether both are true.

Numerics: tflite/kernels/stablehlo_elementwise.h
"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import ARITHMETIC, litert_binary

REGISTRATION = litert_binary(np.multiply, *ARITHMETIC)
