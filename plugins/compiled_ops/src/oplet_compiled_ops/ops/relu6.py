"""RELU6, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.ops.relu6 import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.clamps import clamp_registration

REGISTRATION = clamp_registration(BUILTIN, 0.0, 6.0, ActivationFunctionType.RELU6)
