"""CEIL: the smallest integer that is not below the value. Numerics: tflite/kernels/ceil.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = takes_halves(elementwise_registration(np.ceil, TensorType.FLOAT32, derive=True))
