"""ADD, compiled: float32 with an activation or a broadcast operand, quantized numbers, and int32 and int64."""

from __future__ import annotations

from oplet_builtin_ops.ops.add import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import ADD
from oplet_compiled_ops.elementwise.pairs import pair_registration, plan_sum
from oplet_compiled_ops.elementwise.plain import SUM

REGISTRATION = pair_registration(BUILTIN, ADD, ADD, plan_sum(subtracts=False), SUM)
