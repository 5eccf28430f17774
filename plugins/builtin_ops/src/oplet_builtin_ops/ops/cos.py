"""COS. Numerics: tflite/kernels/elementwise.cc (CosEval)"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = elementwise_registration(np.cos, TensorType.FLOAT32, TensorType.FLOAT16)
