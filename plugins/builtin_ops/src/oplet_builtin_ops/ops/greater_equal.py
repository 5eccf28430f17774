"""GREATER_EQUAL: whether the first value is greater than the second, or equal. Numerics: tflite/kernels/comparisons.cc (GreaterEqualEval)"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.comparison import comparison_registration

REGISTRATION = comparison_registration(np.greater_equal)
