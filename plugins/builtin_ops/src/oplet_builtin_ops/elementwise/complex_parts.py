"""REAL, IMAG and COMPLEX_ABS: from complex to real numbers of the same precision.

Numerics: tflite/kernels/complex_support.cc
"""

from __future__ import annotations

from typing import Final

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.elementwise.elementwise import Elementwise

_PARTS: Final = {TensorType.COMPLEX64: TensorType.FLOAT32, TensorType.COMPLEX128: TensorType.FLOAT64}


def complex_part_registration(compute: Elementwise) -> Registration:
    """Build the registration of REAL, IMAG or COMPLEX_ABS from the numpy function that computes it."""

    def prepare(context: Context, node: Node) -> None:
        ensure_operands(node, 1)
        source, output = node.inputs[0], node.outputs[0]
        ensure_type(source, *_PARTS)
        ensure_type(output, _PARTS[source.type])
        context.resize_tensor(output, source.shape)

    def bind(context: Context, node: Node) -> Thunk:
        source, output = node.inputs[0].data, node.outputs[0].data
        return lambda: compute(source, output)

    return Registration(prepare=prepare, bind=bind, pure=True, types=tuple(_PARTS))


REAL = complex_part_registration(lambda source, output: np.copyto(output, source.real))
IMAG = complex_part_registration(lambda source, output: np.copyto(output, source.imag))
COMPLEX_ABS = complex_part_registration(np.abs)
