"""RELU: max(x, 0). Numerics: tflite/kernels/activations.cc (ReluEval)"""

from __future__ import annotations

import math

from oplet import TensorType
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.activations import clamp_registration

REGISTRATION = takes_halves(clamp_registration(0.0, math.inf, TensorType.INT8, TensorType.UINT8, TensorType.INT16))
