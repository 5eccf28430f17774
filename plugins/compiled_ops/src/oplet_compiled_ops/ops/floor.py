"""FLOOR, compiled: float32."""

from __future__ import annotations

from oplet_builtin_ops.ops.floor import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration
from oplet_compiled_ops.elementwise.maps.plain_maps import FLOATS, map_kernels

REGISTRATION = map_registration(BUILTIN, map_kernels("floor", FLOATS))
