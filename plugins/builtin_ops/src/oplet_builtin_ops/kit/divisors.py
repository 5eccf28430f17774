"""The division-by-zero error."""

from __future__ import annotations

from oplet_builtin_ops.elementwise.pairwise import refuse_zero

__all__ = ["refuse_zero"]
