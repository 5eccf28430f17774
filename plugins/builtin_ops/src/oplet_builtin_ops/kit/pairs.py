"""The rescaling that quantized ADD and SUB (`SumScaling`) and MUL (`ProductScaling`) prepare."""

from __future__ import annotations

from oplet_builtin_ops.elementwise.pair_scaling import ProductScaling, SumScaling

__all__ = ["ProductScaling", "SumScaling"]
