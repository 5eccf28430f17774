"""ADD_N: the sum of two or more tensors of one shape. Numerics: tflite/kernels/add_n.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet_builtin_ops.layers.pacing import WORK

TYPES = (TensorType.FLOAT32, TensorType.INT32)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, max(2, len(node.inputs)))
    first = node.inputs[0]
    ensure_type(first, *TYPES)
    for other in node.inputs[1:]:
        if other.shape != first.shape:
            ensure(False, f"{first} and {other} must have the same shape.")
        ensure_same_type(first, other)
    context.set_type(node.outputs[0], first.type)
    context.resize_tensor(node.outputs[0], first.shape)


def bind(context: Context, node: Node) -> Thunk:
    first, second, *rest = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data
    often = max(1, WORK // max(output.size, 1))

    def run() -> None:
        np.add(first, second, output)
        for number, term in enumerate(rest):
            if number % often == 0:
                checkpoint()
            np.add(output, term, output)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
