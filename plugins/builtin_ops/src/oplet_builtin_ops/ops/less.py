"""LESS: whether the first value is less than the second. Numerics: tflite/kernels/comparisons.cc (LessEval)"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.comparison import comparison_registration

REGISTRATION = comparison_registration(np.less)
