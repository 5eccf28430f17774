"""The rows that SCATTER_ND's vectors of indices mean."""

from __future__ import annotations

from oplet_builtin_ops.shaping.positions import row_finder

__all__ = ["row_finder"]
