"""Matrix products of any numeric type, through BLAS where floats represent all sums exactly."""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet.kernels.arrays import Array
from oplet_builtin_ops.layers.quantized_layer import exact_type

__all__ = ["assign_sums", "product_type"]

_HALVES = (TensorType.FLOAT16, TensorType.BFLOAT16)


def product_type(left: np.dtype, right: np.dtype, output: TensorType, depth: int) -> TensorType:
    """Choose the type in which a product of depth `depth` is multiplied and accumulated.

    Integers are multiplied as floats if all sums are exact; otherwise in the output's type, and wrap around. Sums of an output of
    float16 or bfloat16 are float32.
    """
    if left.kind in "iu" and right.kind in "iu":
        largest = [max(-int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for dtype in (left, right)]
        bound = float(depth * largest[0] * largest[1])
        return exact_type(bound) if bound <= 2.0**53 else output
    return TensorType.FLOAT32 if output in _HALVES else output


def assign_sums(target: Array, sums: Array) -> None:
    """Store the accumulated sums in `target`, converted to its type and reshaped to its shape."""
    values = sums.reshape(target.shape)
    # Sums beyond a narrow integer type wrap around, which a conversion from floats does only by way of int64.
    target[...] = values.astype(np.int64) if target.dtype.kind in "iu" else values
