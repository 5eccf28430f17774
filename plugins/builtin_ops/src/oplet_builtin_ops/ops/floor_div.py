"""FLOOR_DIV: the quotient, rounded down; of floats in double precision. Numerics: tflite/kernels/floor_div.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.elementwise.binary_arithmetic import bind_elementwise
from oplet_builtin_ops.elementwise.pairwise import ensure_no_zeros, prepare_pairwise

TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32)


def prepare(context: Context, node: Node) -> None:
    output = prepare_pairwise(context, node, *TYPES)[2]
    if output.type == TensorType.FLOAT32:
        context.add_temporary(node, output.shape, TensorType.FLOAT64)


def bind(context: Context, node: Node) -> Thunk:
    if node.inputs[0].type != TensorType.FLOAT32:
        return ensure_no_zeros(node.inputs[1], bind_elementwise(np.floor_divide, node, ActivationFunctionType.NONE))
    a, b = (tensor.data for tensor in node.inputs)
    output, quotient = node.outputs[0].data, node.temporaries[0].data
    double = np.dtype(np.float64)

    def run() -> None:
        np.divide(a, b, quotient, dtype=double)
        np.floor(quotient, quotient)
        np.copyto(output, quotient, "same_kind")

    return ensure_no_zeros(node.inputs[1], run)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
