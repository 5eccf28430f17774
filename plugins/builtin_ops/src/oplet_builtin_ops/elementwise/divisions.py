"""FLOOR_DIV: the quotient, rounded down, of floats in double precision; FLOOR_MOD: its remainder, which has the divisor's sign.

Numerics: tflite/kernels/floor_div.cc, tflite/kernels/floor_mod.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.elementwise.binary_arithmetic import bind_elementwise
from oplet_builtin_ops.elementwise.pairwise import ensure_no_zeros, prepare_pairwise

_DIV_TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32)


def _prepare_floor_div(context: Context, node: Node) -> None:
    output = prepare_pairwise(context, node, *_DIV_TYPES)[2]
    if output.type == TensorType.FLOAT32:
        context.add_temporary(node, output.shape, TensorType.FLOAT64)


def _bind_floor_div(context: Context, node: Node) -> Thunk:
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


_MOD_TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def _prepare_floor_mod(context: Context, node: Node) -> None:
    prepare_pairwise(context, node, *_MOD_TYPES)


def _bind_floor_mod(context: Context, node: Node) -> Thunk:
    run = bind_elementwise(np.remainder, node, ActivationFunctionType.NONE)
    return run if node.inputs[1].type == TensorType.FLOAT32 else ensure_no_zeros(node.inputs[1], run)


FLOOR_DIV = Registration(prepare=_prepare_floor_div, bind=_bind_floor_div, pure=True, types=_DIV_TYPES)
FLOOR_MOD = Registration(prepare=_prepare_floor_mod, bind=_bind_floor_mod, pure=True, types=_MOD_TYPES)
