"""UNSORTED_SEGMENT_MAX: the maximum of the rows with the same id. Numerics: tflite/kernels/unsorted_segment.cc"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.shaping.reduction import lowest
from oplet_builtin_ops.shaping.segments import unsorted_segment_reduction

# fmax, as LiteRT's comparison ignores NaN.
REGISTRATION = unsorted_segment_reduction(np.fmax, lowest)
