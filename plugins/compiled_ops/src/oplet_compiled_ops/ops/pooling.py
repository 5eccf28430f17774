"""AVERAGE_POOL_2D and MAX_POOL_2D, compiled: float32, uint8, int8, int16."""

from __future__ import annotations

from oplet_builtin_ops.layers import pooling as builtin
from oplet_compiled_ops.pooling import pool_registration

AVERAGE_POOL_2D = pool_registration(builtin.AVERAGE_POOL_2D, averages=True)
MAX_POOL_2D = pool_registration(builtin.MAX_POOL_2D, averages=False)
