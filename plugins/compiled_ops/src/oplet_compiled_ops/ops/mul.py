"""MUL, compiled: float32 with an activation or a broadcast operand, quantized numbers, and int32 and int64."""

from __future__ import annotations

from oplet_builtin_ops.ops.mul import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import MULTIPLY
from oplet_compiled_ops.elementwise.pairs import pair_registration, plan_product
from oplet_compiled_ops.elementwise.plain import PRODUCT

REGISTRATION = pair_registration(BUILTIN, MULTIPLY, MULTIPLY, plan_product, PRODUCT)
