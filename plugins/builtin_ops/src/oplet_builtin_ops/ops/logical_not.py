"""LOGICAL_NOT. Numerics: tflite/kernels/elementwise.cc (LogicalNotEval)"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.elementwise import elementwise_registration

REGISTRATION = elementwise_registration(np.logical_not, TensorType.BOOL)
