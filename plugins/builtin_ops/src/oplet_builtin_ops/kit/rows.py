"""What the checks of FULLY_CONNECTED find: rows of floats, of integers, and of floats with integer weights."""

from __future__ import annotations

from oplet_builtin_ops.layers.float_rows import FloatRows
from oplet_builtin_ops.layers.hybrid_rows import HybridRows
from oplet_builtin_ops.layers.quantized_rows import QuantizedRows

__all__ = ["FloatRows", "HybridRows", "QuantizedRows"]
