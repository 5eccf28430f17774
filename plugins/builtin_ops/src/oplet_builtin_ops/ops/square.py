"""SQUARE: x * x. Numerics: tflite/kernels/elementwise.cc (SquareEval)"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = takes_halves(elementwise_registration(np.square, TensorType.FLOAT32))
