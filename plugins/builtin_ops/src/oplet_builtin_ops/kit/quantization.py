"""How QUANTIZE treats values beyond int32: wrap around or clamp."""

from __future__ import annotations

from oplet_builtin_ops.arithmetic.quantization import wraps_large_values

__all__ = ["wraps_large_values"]
