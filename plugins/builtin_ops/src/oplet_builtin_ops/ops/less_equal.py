"""LESS_EQUAL: whether the first value is less than the second, or equal. Numerics: tflite/kernels/comparisons.cc (LessEqualEval)"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.comparison import comparison_registration

REGISTRATION = comparison_registration(np.less_equal)
