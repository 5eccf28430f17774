"""NON_MAX_SUPPRESSION_V4 and _V5, compiled."""

from __future__ import annotations

from oplet_builtin_ops.suppression import non_max as builtin
from oplet_compiled_ops.shaping.suppressed_boxes import suppression_registration

NON_MAX_SUPPRESSION_V4 = suppression_registration(builtin.NON_MAX_SUPPRESSION_V4)
NON_MAX_SUPPRESSION_V5 = suppression_registration(builtin.NON_MAX_SUPPRESSION_V5)
