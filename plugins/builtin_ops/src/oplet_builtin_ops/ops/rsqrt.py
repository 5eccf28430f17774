"""RSQRT: 1 / sqrt(x). Numerics: tflite/kernels/elementwise.cc (RsqrtEval)"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Tensor, TensorType
from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier, quotient
from oplet_builtin_ops.arithmetic.fixed_point_functions import inverse_square_root
from oplet_builtin_ops.arithmetic.lookup import lookup_table
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.elementwise import function_table, table_registration

#: The fraction bits of a root before it is scaled.
_FRACTION_BITS = 20


def _table(source: Tensor, output: Tensor) -> Array:
    if source.type == TensorType.INT16:
        largest = np.float32(32767) * np.float32(output.scale)

        def inverse_root(x: NDArray[Any]) -> NDArray[Any]:
            return np.asarray(np.where(x <= 0, largest, np.float32(1) / np.sqrt(np.where(x <= 0, 1, x))))

        return function_table(source, output, inverse_root)
    root = np.sqrt(np.float32(source.scale)) * np.float32(output.scale)
    multiplier, shift = quantize_multiplier(quotient(1.0, float(root)))

    def rule(values: NDArray[np.int64]) -> NDArray[np.int64]:
        steps = np.maximum(values - source.zero_point, 0)
        factors, shifts = inverse_square_root(steps)
        roots = multiply_by_quantized_multiplier(np.ones_like(factors), factors, shifts + _FRACTION_BITS)
        scaled = multiply_by_quantized_multiplier(roots, multiplier, shift - _FRACTION_BITS).astype(np.int64)
        return np.where(steps > 0, scaled + output.zero_point, 127)

    return lookup_table(source.type, output.type, rule)


def _compute(x: Array, y: Array) -> None:
    np.sqrt(x, y)
    np.reciprocal(y, y)


REGISTRATION = takes_halves(
    table_registration(
        _compute,
        _table,
        plain=(TensorType.FLOAT32,),
        quantized=(TensorType.INT8, TensorType.INT16),
        positive=True,
    )
)
