"""The rows of EMBEDDING_LOOKUP: their scales, and the error for one that a table does not have."""

from __future__ import annotations

from oplet_builtin_ops.ops.embedding_lookup import ensure_row, is_plain, row_scales

__all__ = ["ensure_row", "is_plain", "row_scales"]
