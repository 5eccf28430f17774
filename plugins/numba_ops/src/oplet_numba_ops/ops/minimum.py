"""MINIMUM, compiled: float32."""

from __future__ import annotations

from oplet_builtin_ops.ops.minimum import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.other_pairs import SMALLER, other_pair_registration

REGISTRATION = other_pair_registration(BUILTIN, SMALLER)
