"""REDUCE_ALL, _ANY, _MAX and _MIN, compiled: over adjacent constant axes."""

from __future__ import annotations

from oplet_builtin_ops.shaping import reduction as builtin
from oplet_compiled_ops.shaping.reducing import ALL, ANY, BOOLS, LARGEST, NUMBERS, SMALLEST, reduction_registration

REDUCE_ALL = reduction_registration(builtin.REDUCE_ALL, ALL, BOOLS)
REDUCE_ANY = reduction_registration(builtin.REDUCE_ANY, ANY, BOOLS)
REDUCE_MAX = reduction_registration(builtin.REDUCE_MAX, LARGEST, NUMBERS)
REDUCE_MIN = reduction_registration(builtin.REDUCE_MIN, SMALLEST, NUMBERS)
