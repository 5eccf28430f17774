"""RELU, compiled: float32 on several threads."""

from __future__ import annotations

from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.ops.relu import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.clamps import clamp_registration

REGISTRATION = clamp_registration(BUILTIN, ActivationFunctionType.RELU)
