"""SUB, compiled: float32 with an activation or a broadcast operand, quantized numbers, and int32 and int64."""

from __future__ import annotations

from oplet_builtin_ops.ops.sub import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import SUBTRACT, SUBTRACT_FROM
from oplet_compiled_ops.elementwise.pairs import pair_registration, plan_sum
from oplet_compiled_ops.elementwise.plain import DIFFERENCE

REGISTRATION = pair_registration(BUILTIN, SUBTRACT, SUBTRACT_FROM, plan_sum(subtracts=True), DIFFERENCE)
