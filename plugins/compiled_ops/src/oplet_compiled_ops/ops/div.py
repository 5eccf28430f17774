"""DIV, compiled: float32."""

from __future__ import annotations

from oplet_builtin_ops.ops.div import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import DIVIDE
from oplet_compiled_ops.elementwise.other_pairs import other_pair_registration

REGISTRATION = other_pair_registration(BUILTIN, DIVIDE)
