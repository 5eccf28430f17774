"""MAX_POOL_2D: the largest value of each window. Numerics: tflite/kernels/pooling.cc"""

from __future__ import annotations

from oplet import Registration
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers.pooling import TYPES, bind_max, prepare_max

REGISTRATION = takes_halves(Registration(prepare=prepare_max, bind=bind_max, pure=True, types=TYPES))
