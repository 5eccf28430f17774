"""RELU_N1_TO_1, compiled: float32 on several threads."""

from __future__ import annotations

from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.ops.relu_n1_to_1 import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.clamps import clamp_registration

REGISTRATION = clamp_registration(BUILTIN, ActivationFunctionType.RELU_N1_TO_1)
