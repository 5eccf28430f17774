"""REDUCE_ALL: whether all values are true over the axes that the second input names. Numerics: tflite/kernels/reduce.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.shaping.reduction import reduction_by_ufunc

REGISTRATION = reduction_by_ufunc(np.logical_and, lambda dtype: True, TensorType.BOOL)
