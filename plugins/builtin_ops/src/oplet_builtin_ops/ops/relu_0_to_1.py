"""RELU_0_TO_1: min(max(x, 0), 1). Numerics: tflite/kernels/activations.cc (Relu0to1Eval)"""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.elementwise.activations import clamp_registration

REGISTRATION = clamp_registration(0.0, 1.0, TensorType.INT8, TensorType.UINT8)
