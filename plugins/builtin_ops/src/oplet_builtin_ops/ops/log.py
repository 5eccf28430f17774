"""LOG: the natural logarithm. Numerics: tflite/kernels/elementwise.cc (LogEval, LogLUTPrepare)"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Tensor, TensorType
from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import quantized_range
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.elementwise import function_table, table_registration


def _table(source: Tensor, output: Tensor) -> Array:
    lowest = np.float32(quantized_range(source.type)[0] - output.zero_point) * np.float32(output.scale)

    def log(x: NDArray[Any]) -> NDArray[Any]:
        # Values without a logarithm become the smallest number of the output; NaN stays NaN.
        return np.where(x <= 0, lowest, np.log(np.where(x <= 0, 1, x).astype(np.float64)))

    return function_table(source, output, log)


REGISTRATION = takes_halves(
    table_registration(np.log, _table, plain=(TensorType.FLOAT32,), quantized=(TensorType.INT8, TensorType.INT16))
)
