"""GREATER: whether the first value is greater than the second. Numerics: tflite/kernels/comparisons.cc (GreaterEval)"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.comparison import comparison_registration

REGISTRATION = comparison_registration(np.greater)
