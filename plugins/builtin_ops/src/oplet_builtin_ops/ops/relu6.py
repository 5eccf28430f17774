"""RELU6: min(max(x, 0), 6). Numerics: tflite/kernels/activations.cc (Relu6Eval)"""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.activations import clamp_registration

REGISTRATION = takes_halves(clamp_registration(0.0, 6.0, TensorType.INT8, TensorType.UINT8, TensorType.INT16))
