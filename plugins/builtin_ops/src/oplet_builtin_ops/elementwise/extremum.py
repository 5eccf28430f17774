"""MAXIMUM and MINIMUM of two tensors, element by element. If the first value is NaN, the result is the second.

Numerics: tflite/kernels/maximum_minimum.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType
from oplet.kernels.arrays import Array, Thunk
from oplet_builtin_ops.elementwise.binary_arithmetic import long_rows
from oplet_builtin_ops.elementwise.pairwise import prepare_pairwise

FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16)
INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def extremum_registration(ufunc: np.ufunc, ignoring: np.ufunc, chooses_first: np.ufunc) -> Registration:
    """Build the registration of MAXIMUM or MINIMUM.

    Args:
        ufunc: np.maximum or np.minimum, which return NaN if an operand is NaN.
        ignoring: np.fmax or np.fmin, which return the other operand then.
        chooses_first: the comparison by which LiteRT takes the first operand; it is false for a NaN.
    """

    def prepare(context: Context, node: Node) -> None:
        prepare_pairwise(context, node, *FLOATS, *INTEGERS)

    def bind(context: Context, node: Node) -> Thunk:
        first, second = node.inputs
        a, b, output = long_rows(node, first, second, node.outputs[0])
        if first.type in INTEGERS or _is_ordered(first):
            return lambda: ufunc(a, b, out=output)
        if _is_ordered(second):
            return lambda: ignoring(a, b, out=output)

        def run() -> None:
            ufunc(a, b, out=output)
            if _has_nan(output):
                np.copyto(output, np.where(chooses_first(a, b), a, b))

        return run

    return Registration(prepare=prepare, bind=bind, pure=True, types=(*FLOATS, *INTEGERS))


def _is_ordered(tensor: Tensor) -> bool:
    """Return whether a tensor is a constant without NaN."""
    return tensor.is_constant and not np.isnan(tensor.data).any()


def _has_nan(values: Array) -> bool:
    if values.dtype == np.float32:
        # A sum of squares is NaN only if a value is, and BLAS is the fastest way to read an array.
        flat = values.reshape(-1)
        return bool(np.isnan(flat.dot(flat)))
    return bool(np.isnan(values).any())


MAXIMUM = extremum_registration(np.maximum, np.fmax, np.greater)
MINIMUM = extremum_registration(np.minimum, np.fmin, np.less)
