"""SIGN: -1, 0 or 1; NaN stays NaN. Numerics: tflite/kernels/sign.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = elementwise_registration(np.sign, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.INT32)
