"""What ADD, SUB and MUL of quantized numbers prepare."""

from __future__ import annotations

from oplet_builtin_ops.elementwise.pair_scaling import ProductScaling, SumScaling

__all__ = ["ProductScaling", "SumScaling"]
