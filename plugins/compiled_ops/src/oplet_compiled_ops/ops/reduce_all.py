"""REDUCE_ALL, compiled: over adjacent constant axes."""

from __future__ import annotations

from oplet_builtin_ops.ops.reduce_all import REGISTRATION as BUILTIN
from oplet_compiled_ops.shaping.reducing import ALL, BOOLS, reduction_registration

REGISTRATION = reduction_registration(BUILTIN, ALL, BOOLS)
