"""FLOOR: the largest integer that is not above the value. Numerics: tflite/kernels/floor.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = elementwise_registration(np.floor, TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, derive=True)
