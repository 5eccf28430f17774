"""The checks of DEPTHWISE_CONV_2D, which a compiled kernel makes in place of the numpy kernel's whole `prepare`."""

from __future__ import annotations

from oplet_builtin_ops.layers.checked_depthwise import check_depthwise

__all__ = ["check_depthwise"]
