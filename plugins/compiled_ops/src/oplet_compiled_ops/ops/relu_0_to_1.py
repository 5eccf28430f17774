"""RELU_0_TO_1, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet_builtin_ops.ops.relu_0_to_1 import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.clamps import clamp_registration

REGISTRATION = clamp_registration(BUILTIN, 0.0, 1.0)
