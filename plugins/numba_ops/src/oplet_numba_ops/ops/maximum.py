"""MAXIMUM, compiled: float32."""

from __future__ import annotations

from oplet_builtin_ops.ops.maximum import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.other_pairs import LARGER, other_pair_registration

REGISTRATION = other_pair_registration(BUILTIN, LARGER)
