"""FLOOR_MOD: the remainder of FLOOR_DIV; it has the divisor's sign. Numerics: tflite/kernels/floor_mod.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.elementwise.binary_arithmetic import bind_elementwise
from oplet_builtin_ops.elementwise.pairwise import ensure_no_zeros, prepare_pairwise

TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def prepare(context: Context, node: Node) -> None:
    prepare_pairwise(context, node, *TYPES)


def bind(context: Context, node: Node) -> Thunk:
    run = bind_elementwise(np.remainder, node, ActivationFunctionType.NONE)
    return run if node.inputs[1].type == TensorType.FLOAT32 else ensure_no_zeros(node.inputs[1], run)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
