"""UNSORTED_SEGMENT_SUM: the sum of the rows with the same id. Numerics: tflite/kernels/unsorted_segment.cc"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.shaping.segments import unsorted_segment_reduction

REGISTRATION = unsorted_segment_reduction(np.add, lambda dtype: 0)
