"""STABLEHLO_ABS: the magnitude; of complex values, a float."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, SIGNED, ensure_not_quantized

_PARTS = {TensorType.COMPLEX64: TensorType.FLOAT32, TensorType.COMPLEX128: TensorType.FLOAT64}


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *FLOATS, *SIGNED, *COMPLEX)
    if source.type in _PARTS:
        ensure_type(output, _PARTS[source.type])
    else:
        ensure_same_type(source, output)
    ensure_not_quantized(source, output)
    context.resize_tensor(output, source.shape)


def bind(context: Context, node: Node) -> Thunk:
    return quietly(np.absolute, node.inputs[0].data, node.outputs[0].data)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*FLOATS, *SIGNED, *COMPLEX))
