"""MULTINOMIAL, its blocks of bits compiled; numpy looks up the classes, as no other exponentials have the same last bits."""

from __future__ import annotations

from oplet_builtin_ops.ops.multinomial import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.random_words import drawing_registration

REGISTRATION = drawing_registration(BUILTIN)
