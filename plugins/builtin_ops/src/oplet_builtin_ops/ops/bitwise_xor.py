"""BITWISE_XOR. Numerics: tflite/kernels/bitwise_xor.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_builtin_ops.elementwise.pairwise import pairwise_registration

REGISTRATION = pairwise_registration(
    np.bitwise_xor,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.UINT16,
    TensorType.INT32,
    TensorType.UINT32,
)
