"""The checks of FULLY_CONNECTED, and what they find: rows of floats, of integers, or of floats with integer weights."""

from __future__ import annotations

from oplet_builtin_ops.layers.checked_rows import check_rows

__all__ = ["check_rows"]
