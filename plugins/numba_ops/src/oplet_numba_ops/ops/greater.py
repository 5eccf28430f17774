"""GREATER, compiled: float32, int32 and int64."""

from __future__ import annotations

from oplet_builtin_ops.ops.greater import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.plain_pairs import GREATER, comparison_registration

REGISTRATION = comparison_registration(BUILTIN, GREATER)
