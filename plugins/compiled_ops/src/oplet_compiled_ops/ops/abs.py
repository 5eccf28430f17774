"""ABS, compiled: float32, integers, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.abs import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.functions import MAGNITUDE
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration
from oplet_compiled_ops.elementwise.maps.plain_maps import SIGNED, map_kernels

REGISTRATION = map_registration(
    BUILTIN, {TensorType.FLOAT32: MAGNITUDE, **map_kernels("absolute", SIGNED)}, (TensorType.INT8, TensorType.INT16)
)
