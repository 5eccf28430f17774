"""SIGN, compiled: float32, float64 and int32."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.sign import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration
from oplet_compiled_ops.elementwise.maps.plain_maps import map_kernels

REGISTRATION = map_registration(
    BUILTIN, map_kernels("sign", {TensorType.FLOAT32: "f4", TensorType.FLOAT64: "f8", TensorType.INT32: "i4"})
)
