"""ADD and SUB, compiled: float32 with an activation or a broadcast operand, quantized numbers, and int32 and int64."""

from __future__ import annotations

from oplet_builtin_ops.elementwise import additive as builtin
from oplet_compiled_ops import elementwise as kernels
from oplet_compiled_ops.elementwise.pairs import pair_registration, plan_sum
from oplet_compiled_ops.elementwise.plain import DIFFERENCE, SUM

ADD = pair_registration(builtin.ADD, kernels.ADD, kernels.ADD, plan_sum(subtracts=False), SUM)
SUB = pair_registration(builtin.SUB, kernels.SUBTRACT, kernels.SUBTRACT_FROM, plan_sum(subtracts=True), DIFFERENCE)
