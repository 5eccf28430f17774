"""MAXIMUM, compiled: float32 and integers."""

from __future__ import annotations

from oplet_builtin_ops.ops.maximum import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import LARGER
from oplet_compiled_ops.elementwise.other_pairs import other_pair_registration
from oplet_compiled_ops.elementwise.plain import plain_pairs

REGISTRATION = other_pair_registration(BUILTIN, LARGER, plain_pairs.LARGER)
