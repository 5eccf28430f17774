"""REDUCE_PROD, compiled: over neighbouring axes that are constant."""

from __future__ import annotations

from oplet_builtin_ops.ops.reduce_prod import REGISTRATION as BUILTIN
from oplet_numba_ops.shaping.reducing import INTEGERS, PRODUCT, reduction_registration

REGISTRATION = reduction_registration(BUILTIN, PRODUCT, INTEGERS)
