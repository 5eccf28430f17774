"""NON_MAX_SUPPRESSION_V5, compiled."""

from __future__ import annotations

from oplet_builtin_ops.ops.non_max_suppression_v5 import REGISTRATION as BUILTIN
from oplet_compiled_ops.shaping.suppressed_boxes import suppression_registration

REGISTRATION = suppression_registration(BUILTIN)
