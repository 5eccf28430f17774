"""SQRT: quantized results are truncated, not rounded. Numerics: tflite/kernels/elementwise.cc (SqrtEval)"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oplet import Tensor, TensorType
from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import int32_of
from oplet_builtin_ops.arithmetic.lookup import lookup_table
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.elementwise import table_registration


def _table(source: Tensor, output: Tensor) -> Array:
    def rule(values: NDArray[np.int64]) -> NDArray[np.int64]:
        steps = np.maximum(values - source.zero_point, 0).astype(np.float32)
        with np.errstate(all="ignore"):
            roots = np.sqrt(np.float32(source.scale) * steps) / np.float32(output.scale)
        whole = int32_of(roots).astype(np.int64)
        return (whole + output.zero_point).astype(np.int32).astype(np.int64)

    return lookup_table(source.type, output.type, rule)


REGISTRATION = takes_halves(
    table_registration(
        np.sqrt,
        _table,
        plain=(TensorType.FLOAT32,),
        quantized=(TensorType.INT8, TensorType.INT16),
        positive=True,
    )
)
