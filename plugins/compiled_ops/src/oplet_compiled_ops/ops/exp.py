"""EXP, compiled: small float32 tensors, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.exp import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.one_operand import FEW, map_registration
from oplet_compiled_ops.elementwise.maps.plain_maps import FLOATS, map_kernels

REGISTRATION = map_registration(BUILTIN, map_kernels("exp", FLOATS), (TensorType.INT8, TensorType.INT16), most=FEW)
