"""ROUND: the nearest integer, halves to the even one. Numerics: tflite/kernels/round.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = elementwise_registration(np.rint, TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, derive=True)
