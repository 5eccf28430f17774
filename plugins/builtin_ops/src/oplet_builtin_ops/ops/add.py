"""ADD: the sum of two tensors that broadcast, with a fused activation. Numerics: tflite/kernels/add.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet.schema.options import AddOptions
from oplet_builtin_ops.elementwise.additive import additive_registration

REGISTRATION = additive_registration(
    np.add,
    AddOptions,
    plain=(TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT32, TensorType.INT64),
    plain_int16=True,
)
