"""ELU, compiled: quantized numbers by look-up table."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.elu import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration

REGISTRATION = map_registration(BUILTIN, {}, (TensorType.INT8,))
