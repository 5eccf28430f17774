"""SUB: the difference of two tensors that broadcast, with a fused activation. Numerics: tflite/kernels/sub.cc"""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet.schema.options import SubOptions
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.additive import additive_registration

REGISTRATION = takes_halves(
    additive_registration(
        np.subtract,
        SubOptions,
        plain=(TensorType.FLOAT32, TensorType.INT32, TensorType.INT64),
        plain_int16=False,
        fine_output=True,
    )
)
