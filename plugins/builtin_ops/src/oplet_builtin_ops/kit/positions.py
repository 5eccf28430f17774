"""`row_finder`, for the rows that SCATTER_ND's index vectors mean."""

from __future__ import annotations

from oplet_builtin_ops.shaping.positions import row_finder

__all__ = ["row_finder"]
