"""Flat row numbers for SCATTER_ND's index vectors."""

from __future__ import annotations

from oplet_builtin_ops.shaping.positions import row_finder

__all__ = ["row_finder"]
