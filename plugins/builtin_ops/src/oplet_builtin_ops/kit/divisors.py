"""`refuse_zero`, which raises the error of FLOOR_DIV and FLOOR_MOD for a divisor of zero."""

from __future__ import annotations

from oplet_builtin_ops.elementwise.pairwise import refuse_zero

__all__ = ["refuse_zero"]
