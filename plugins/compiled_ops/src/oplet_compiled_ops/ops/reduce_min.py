"""REDUCE_MIN, compiled: over adjacent constant axes."""

from __future__ import annotations

from oplet_builtin_ops.ops.reduce_min import REGISTRATION as BUILTIN
from oplet_compiled_ops.shaping.reducing import NUMBERS, SMALLEST, reduction_registration

REGISTRATION = reduction_registration(BUILTIN, SMALLEST, NUMBERS)
