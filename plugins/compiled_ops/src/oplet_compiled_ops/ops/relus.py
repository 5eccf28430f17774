"""RELU and the other clamps, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from math import inf

from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.elementwise import activations as builtin
from oplet_compiled_ops.elementwise.maps.clamps import clamp_registration

RELU = clamp_registration(builtin.RELU, 0.0, inf, ActivationFunctionType.RELU)
RELU6 = clamp_registration(builtin.RELU6, 0.0, 6.0, ActivationFunctionType.RELU6)
RELU_0_TO_1 = clamp_registration(builtin.RELU_0_TO_1, 0.0, 1.0)
RELU_N1_TO_1 = clamp_registration(builtin.RELU_N1_TO_1, -1.0, 1.0, ActivationFunctionType.RELU_N1_TO_1)
