"""Rescaled values of quantized comparison operands."""

from __future__ import annotations

from oplet_builtin_ops.elementwise.comparison import scaled_values

__all__ = ["scaled_values"]
