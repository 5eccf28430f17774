"""STABLEHLO_MULTIPLY: elementwise product; logical AND of booleans.

Numerics: tflite/kernels/stablehlo_elementwise.h
"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import ARITHMETIC, litert_binary

REGISTRATION = litert_binary(np.multiply, *ARITHMETIC)
