"""EQUAL: whether two values are equal. Numerics: tflite/kernels/comparisons.cc (EqualEval)"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.comparison import comparison_registration

REGISTRATION = comparison_registration(np.equal, TensorType.BOOL, TensorType.STRING, scaled_int16=True)
