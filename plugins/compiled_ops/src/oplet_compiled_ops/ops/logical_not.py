"""LOGICAL_NOT, compiled: bool."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.logical_not import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration
from oplet_compiled_ops.elementwise.maps.plain_maps import map_kernels

REGISTRATION = map_registration(BUILTIN, map_kernels("is_zero", {TensorType.BOOL: "u1"}))
