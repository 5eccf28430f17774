"""AVERAGE_POOL_2D: the mean of each window, of the values inside the map. Numerics: tflite/kernels/pooling.cc"""

from __future__ import annotations

from oplet import Registration
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers.pooling import TYPES, bind_average, prepare_average

REGISTRATION = takes_halves(Registration(prepare=prepare_average, bind=bind_average, pure=True, types=TYPES))
