"""What QUANTIZE does with values beyond int32."""

from __future__ import annotations

from oplet_builtin_ops.arithmetic.quantization import wraps_large_values

__all__ = ["wraps_large_values"]
