"""UNSORTED_SEGMENT_MIN: the minimum of the rows with the same id. Numerics: tflite/kernels/unsorted_segment.cc"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.shaping.reduction import highest
from oplet_builtin_ops.shaping.segments import unsorted_segment_reduction

# fmin, as LiteRT's comparison ignores NaN.
REGISTRATION = unsorted_segment_reduction(np.fmin, highest)
