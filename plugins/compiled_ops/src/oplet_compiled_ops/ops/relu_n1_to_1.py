"""RELU_N1_TO_1, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.ops.relu_n1_to_1 import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.clamps import clamp_registration

REGISTRATION = clamp_registration(BUILTIN, -1.0, 1.0, ActivationFunctionType.RELU_N1_TO_1)
