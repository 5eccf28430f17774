"""FLOOR_MOD, compiled: int32 by constants above 0."""

from __future__ import annotations

from oplet_builtin_ops.ops.floor_mod import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.plain_pairs import REMAINDER, divided_registration

REGISTRATION = divided_registration(BUILTIN, REMAINDER)
