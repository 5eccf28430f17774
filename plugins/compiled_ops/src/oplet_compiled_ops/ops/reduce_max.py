"""REDUCE_MAX, compiled: over adjacent constant axes."""

from __future__ import annotations

from oplet_builtin_ops.ops.reduce_max import REGISTRATION as BUILTIN
from oplet_compiled_ops.shaping.reducing import LARGEST, NUMBERS, reduction_registration

REGISTRATION = reduction_registration(BUILTIN, LARGEST, NUMBERS)
