"""The plans that FULLY_CONNECTED prepares: for floats, for integers, and for floats with integer weights."""

from __future__ import annotations

from oplet_builtin_ops.layers.float_rows import FloatRows
from oplet_builtin_ops.layers.hybrid_rows import HybridRows
from oplet_builtin_ops.layers.quantized_rows import QuantizedRows

__all__ = ["FloatRows", "HybridRows", "QuantizedRows"]
