"""FLOOR_DIV, compiled: float32 and integers."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.floor_div import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.plain.divisions import QUOTIENT, divided_registration

REGISTRATION = divided_registration(
    BUILTIN, QUOTIENT, {TensorType.FLOAT32: "f4", TensorType.INT8: "i1", TensorType.INT16: "i2", TensorType.INT32: "i4"}
)
