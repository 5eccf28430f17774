"""REDUCE_MAX: the maximum over the axes that the second input names. Numerics: tflite/kernels/reduce.cc"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.shaping.reduction import NUMBERS_AND_BOOL, lowest, reduction_by_ufunc

# fmax, as LiteRT's comparison ignores NaN.
REGISTRATION = takes_halves(reduction_by_ufunc(np.fmax, lowest, *NUMBERS_AND_BOOL))
