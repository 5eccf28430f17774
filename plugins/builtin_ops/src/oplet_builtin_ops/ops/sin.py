"""SIN. Numerics: tflite/kernels/elementwise.cc (SinEval)"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = elementwise_registration(np.sin, TensorType.FLOAT32, TensorType.FLOAT16)
