"""SQUARE: x * x. Numerics: tflite/kernels/elementwise.cc (SquareEval)"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = elementwise_registration(np.square, TensorType.FLOAT32)
