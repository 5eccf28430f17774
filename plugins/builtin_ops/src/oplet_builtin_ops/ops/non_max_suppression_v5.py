"""NON_MAX_SUPPRESSION_V5: selects boxes by score; those that overlap a better one are dropped, or get a lower score.

Numerics: tflite/kernels/internal/reference/non_max_suppression.h
"""

from __future__ import annotations

from oplet import Registration
from oplet_builtin_ops.suppression.non_max import TYPES, bind_suppression, prepare_suppression

REGISTRATION = Registration(prepare=prepare_suppression, bind=bind_suppression, pure=True, types=TYPES)
