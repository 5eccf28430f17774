"""ABS: |x|; quantized values are also rescaled to the output. Numerics: tflite/kernels/elementwise.cc (AbsEval)"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oplet import Tensor, TensorType
from oplet.kernels.arrays import Array
from oplet_builtin_ops.arithmetic.lookup import lookup_table
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.activations import scale_ratio, scaled
from oplet_builtin_ops.elementwise.elementwise import table_registration


def _table(source: Tensor, output: Tensor) -> Array:
    def rule(values: NDArray[np.int64]) -> NDArray[np.int64]:
        magnitudes = np.abs(values - source.zero_point)
        if source.scale != output.scale:
            magnitudes = scaled(magnitudes, scale_ratio(source, output))
        return magnitudes + output.zero_point

    return lookup_table(source.type, output.type, rule)


REGISTRATION = takes_halves(
    table_registration(
        np.abs,
        _table,
        plain=(TensorType.FLOAT32, TensorType.INT16, TensorType.INT32),
        quantized=(TensorType.INT8, TensorType.INT16),
    )
)
