"""FLOOR_DIV and FLOOR_MOD, compiled: float32 and integers."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.elementwise import divisions as builtin
from oplet_compiled_ops.elementwise.plain.divisions import QUOTIENT, REMAINDER, divided_registration
from oplet_compiled_ops.elementwise.plain.plain_pairs import SIGNED

_QUOTIENTS = {TensorType.FLOAT32: "f4", TensorType.INT8: "i1", TensorType.INT16: "i2", TensorType.INT32: "i4"}

FLOOR_DIV = divided_registration(builtin.FLOOR_DIV, QUOTIENT, _QUOTIENTS)
FLOOR_MOD = divided_registration(builtin.FLOOR_MOD, REMAINDER, {TensorType.FLOAT32: "f4", **SIGNED})
