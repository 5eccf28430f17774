"""NEG: -x. Integers wrap around and are not rescaled. Numerics: tflite/kernels/neg.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = elementwise_registration(
    np.negative,
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    derive=True,
)
