"""UNSORTED_SEGMENT_PROD: the product of the rows with the same id. Numerics: tflite/kernels/unsorted_segment.cc"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.shaping.segments import unsorted_segment_reduction

REGISTRATION = unsorted_segment_reduction(np.multiply, lambda dtype: 1)
