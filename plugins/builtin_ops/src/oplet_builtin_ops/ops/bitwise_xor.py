"""BITWISE_XOR. Numerics: tflite/kernels/bitwise_xor.cc"""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.elementwise.pairwise import pairwise_registration
from oplet_builtin_ops.types import INTEGERS

REGISTRATION = pairwise_registration(np.bitwise_xor, *INTEGERS)
