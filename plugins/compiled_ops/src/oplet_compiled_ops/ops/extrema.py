"""MAXIMUM and MINIMUM, compiled: float32 and integers."""

from __future__ import annotations

from oplet_builtin_ops.elementwise import extremum as builtin
from oplet_compiled_ops.elementwise import LARGER, SMALLER
from oplet_compiled_ops.elementwise.other_pairs import other_pair_registration
from oplet_compiled_ops.elementwise.plain import plain_pairs

MAXIMUM = other_pair_registration(builtin.MAXIMUM, LARGER, plain_pairs.LARGER)
MINIMUM = other_pair_registration(builtin.MINIMUM, SMALLER, plain_pairs.SMALLER)
