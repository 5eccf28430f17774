"""LOGICAL_AND. Numerics: tflite/kernels/logical.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.pairwise import pairwise_registration

REGISTRATION = pairwise_registration(np.logical_and, TensorType.BOOL)
