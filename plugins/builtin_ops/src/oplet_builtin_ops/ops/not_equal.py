"""NOT_EQUAL: whether two values are not equal. Numerics: tflite/kernels/comparisons.cc (NotEqualEval)"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.comparison import comparison_registration

REGISTRATION = comparison_registration(
    np.not_equal,
    TensorType.BOOL,
    TensorType.STRING,
    scaled_int16=True,
    differences="compares plain INT16, where LiteRT writes nothing",
)
