"""REDUCE_ANY, compiled: over adjacent constant axes."""

from __future__ import annotations

from oplet_builtin_ops.ops.reduce_any import REGISTRATION as BUILTIN
from oplet_compiled_ops.shaping.reducing import ANY, BOOLS, reduction_registration

REGISTRATION = reduction_registration(BUILTIN, ANY, BOOLS)
