"""FLOOR_DIV: the quotient, rounded down, computed in double precision. Numerics: tflite/kernels/floor_div.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet_builtin_ops.pairwise import ensure_no_zeros, prepare_pairwise
from oplet_builtin_ops.shapes import Thunk


def prepare(context: Context, node: Node) -> None:
    output = prepare_pairwise(context, node, TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32)[2]
    context.add_temporary(node, output.shape, TensorType.FLOAT64)
    if output.type != TensorType.FLOAT32:
        context.add_temporary(node, output.shape, TensorType.INT64)


def bind(context: Context, node: Node) -> Thunk:
    a, b = (tensor.data for tensor in node.inputs)
    output, quotient = node.outputs[0].data, node.temporaries[0].data
    double = np.dtype(np.float64)

    def run_floats() -> None:
        np.divide(a, b, quotient, dtype=double)
        np.floor(quotient, quotient)
        np.copyto(output, quotient, "same_kind")

    if output.dtype.kind == "f":
        return ensure_no_zeros(node.inputs[1], run_floats)
    wide = node.temporaries[1].data

    def run() -> None:
        np.divide(a, b, quotient, dtype=double)
        np.floor(quotient, quotient)
        # The lowest number divided by -1 wraps around, which it must do as an integer.
        np.copyto(wide, quotient, "unsafe")
        np.copyto(output, wide, "same_kind")

    return ensure_no_zeros(node.inputs[1], run)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
