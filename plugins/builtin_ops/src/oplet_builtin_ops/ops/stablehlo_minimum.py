"""STABLEHLO_MINIMUM: the smaller of two values; the second only if it is smaller, so that a NaN there is passed over.

Numerics: tflite/kernels/stablehlo_elementwise.h
"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.stablehlo_elementwise import extremum

REGISTRATION = extremum(np.minimum, np.less)
