"""LOGICAL_AND, LOGICAL_OR and BITWISE_XOR, compiled."""

from __future__ import annotations

from oplet_builtin_ops.elementwise import pairwise as builtin
from oplet_compiled_ops.elementwise.plain.plain_pairs import AND, OR, SHORT, XOR, integer_registration, logical_registration

BITWISE_XOR = integer_registration(builtin.BITWISE_XOR, XOR, SHORT)
LOGICAL_AND = logical_registration(builtin.LOGICAL_AND, AND)
LOGICAL_OR = logical_registration(builtin.LOGICAL_OR, OR)
