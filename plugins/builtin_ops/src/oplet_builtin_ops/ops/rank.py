"""RANK: the number of the input's dimensions; a constant. Numerics: tflite/kernels/rank.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    output = node.outputs[0]
    context.set_type(output, TensorType.INT32)
    context.resize_tensor(output, ())
    context.set_constant(output, np.array(node.inputs[0].ndim, np.int32))


def bind(context: Context, node: Node) -> Thunk:
    return lambda: None


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
