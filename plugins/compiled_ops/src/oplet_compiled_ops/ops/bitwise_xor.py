"""BITWISE_XOR, compiled."""

from __future__ import annotations

from oplet_builtin_ops.ops.bitwise_xor import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.plain.plain_pairs import SHORT, XOR, integer_registration

REGISTRATION = integer_registration(BUILTIN, XOR, SHORT)
