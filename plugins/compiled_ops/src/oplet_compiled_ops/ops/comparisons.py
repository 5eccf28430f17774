"""The six comparisons, compiled: float32, integers and quantized numbers."""

from __future__ import annotations

from oplet_builtin_ops.elementwise import comparison as builtin
from oplet_compiled_ops.elementwise.plain import comparisons as kernels
from oplet_compiled_ops.elementwise.plain.comparisons import comparison_registration

EQUAL = comparison_registration(builtin.EQUAL, kernels.EQUAL)
NOT_EQUAL = comparison_registration(builtin.NOT_EQUAL, kernels.NOT_EQUAL)
GREATER = comparison_registration(builtin.GREATER, kernels.GREATER)
GREATER_EQUAL = comparison_registration(builtin.GREATER_EQUAL, kernels.GREATER_EQUAL)
LESS = comparison_registration(builtin.LESS, kernels.LESS)
LESS_EQUAL = comparison_registration(builtin.LESS_EQUAL, kernels.LESS_EQUAL)
