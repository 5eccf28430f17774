"""LESS_EQUAL, compiled: float32, integers and quantized numbers."""

from __future__ import annotations

from oplet_builtin_ops.ops.less_equal import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.plain.comparisons import LESS_EQUAL, comparison_registration

REGISTRATION = comparison_registration(BUILTIN, LESS_EQUAL)
