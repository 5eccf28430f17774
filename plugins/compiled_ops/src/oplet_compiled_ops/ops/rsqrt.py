"""RSQRT, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.rsqrt import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.functions import INVERSE_ROOT
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration

REGISTRATION = map_registration(BUILTIN, {TensorType.FLOAT32: INVERSE_ROOT}, (TensorType.INT8, TensorType.INT16), positive=True)
