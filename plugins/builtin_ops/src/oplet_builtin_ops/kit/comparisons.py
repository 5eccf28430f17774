"""`scaled_values`: what the stored values of a quantized operand are compared as."""

from __future__ import annotations

from oplet_builtin_ops.elementwise.comparison import scaled_values

__all__ = ["scaled_values"]
