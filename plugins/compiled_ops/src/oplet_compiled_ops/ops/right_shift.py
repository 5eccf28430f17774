"""RIGHT_SHIFT, compiled."""

from __future__ import annotations

from oplet_builtin_ops.ops.right_shift import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.plain.plain_pairs import SHIFTED, SHORT, integer_registration

REGISTRATION = integer_registration(BUILTIN, SHIFTED, SHORT)
