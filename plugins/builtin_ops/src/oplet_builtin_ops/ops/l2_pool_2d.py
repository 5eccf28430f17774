"""L2_POOL_2D: the root mean square of each window's values inside the map. Numerics: tflite/kernels/pooling.cc"""

from __future__ import annotations

from oplet import Registration, TensorType
from oplet_builtin_ops.layers.pooling import bind_l2, prepare_l2

REGISTRATION = Registration(prepare=prepare_l2, bind=bind_l2, pure=True, types=(TensorType.FLOAT32,))
