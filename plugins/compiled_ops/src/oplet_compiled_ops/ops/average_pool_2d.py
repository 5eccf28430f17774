"""AVERAGE_POOL_2D, compiled."""

from __future__ import annotations

from oplet_builtin_ops.ops.average_pool_2d import REGISTRATION as BUILTIN
from oplet_compiled_ops.pooling import pool_registration

REGISTRATION = pool_registration(BUILTIN, averages=True)
