"""SEGMENT_SUM: sums of consecutive rows with the same id. Numerics: tflite/kernels/segment_sum.cc"""

from __future__ import annotations

from oplet_builtin_ops.shaping.segments import segment_reduction

REGISTRATION = segment_reduction()
