"""REDUCE_MIN: the minimum over the axes that the second input names. Numerics: tflite/kernels/reduce.cc"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.shaping.reduction import NUMBERS_AND_BOOL, highest, reduction_by_ufunc

# fmin, as LiteRT's comparison ignores NaN.
REGISTRATION = takes_halves(reduction_by_ufunc(np.fmin, highest, *NUMBERS_AND_BOOL))
