"""The checks of FULLY_CONNECTED, which a compiled kernel makes in place of the numpy kernel's whole `prepare`."""

from __future__ import annotations

from oplet_builtin_ops.layers.checked_rows import check_rows

__all__ = ["check_rows"]
