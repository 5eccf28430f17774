"""RELU_N1_TO_1: min(max(x, -1), 1). Numerics: tflite/kernels/activations.cc (Relu1Eval)"""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.activations import clamp_registration

REGISTRATION = takes_halves(clamp_registration(-1.0, 1.0, TensorType.INT8, TensorType.UINT8))
