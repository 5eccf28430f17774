"""`refuse_below`, which raises the error of SQRT and RSQRT for quantized values below the zero point."""

from __future__ import annotations

from oplet_builtin_ops.arithmetic.lookup import refuse_below

__all__ = ["refuse_below"]
