"""MINIMUM, compiled: float32 and integers."""

from __future__ import annotations

from oplet_builtin_ops.ops.minimum import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import SMALLER
from oplet_compiled_ops.elementwise.other_pairs import other_pair_registration
from oplet_compiled_ops.elementwise.plain import plain_pairs

REGISTRATION = other_pair_registration(BUILTIN, SMALLER, plain_pairs.SMALLER)
