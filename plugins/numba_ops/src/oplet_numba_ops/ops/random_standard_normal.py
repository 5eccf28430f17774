"""RANDOM_STANDARD_NORMAL, its blocks of bits compiled: numpy makes the numbers of them, as no other functions have the same last bits."""

from __future__ import annotations

from oplet_builtin_ops.ops.random_standard_normal import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.random_words import drawing_registration

REGISTRATION = drawing_registration(BUILTIN)
