"""MUL, compiled: float32 with an activation or a broadcast operand, and quantized numbers."""

from __future__ import annotations

from oplet_builtin_ops.ops.mul import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.float_pairs import MULTIPLY
from oplet_numba_ops.elementwise.pairs import pair_registration, plan_product

REGISTRATION = pair_registration(BUILTIN, MULTIPLY, MULTIPLY, plan_product)
