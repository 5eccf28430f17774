"""MAX_POOL_2D, compiled: float32, uint8, int8, int16."""

from __future__ import annotations

from oplet_builtin_ops.ops.max_pool_2d import REGISTRATION as BUILTIN
from oplet_compiled_ops.pooling import pool_registration

REGISTRATION = pool_registration(BUILTIN, averages=False)
