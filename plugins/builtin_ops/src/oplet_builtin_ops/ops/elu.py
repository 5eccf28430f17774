"""ELU: x where it is positive, else exp(x) - 1. Numerics: tflite/kernels/activations.cc (EluPrepare, EluEval)"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.elementwise import bind_table, function_table, prepare_elementwise

TYPES = (TensorType.FLOAT32, TensorType.INT8)


def _elu(x: NDArray[Any]) -> NDArray[Any]:
    return np.where(x < 0, np.expm1(np.minimum(x, 0).astype(np.float64)), x)


def prepare(context: Context, node: Node) -> None:
    source, output = prepare_elementwise(context, node, *TYPES)
    if source.type == TensorType.INT8:
        node.prepared = node.cached("table", (), lambda: function_table(source, output, _elu))


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    if node.inputs[0].type == TensorType.INT8:
        return bind_table(node)
    zero = np.zeros((), np.float32)

    def run() -> None:
        np.minimum(source, zero, out=output)
        np.expm1(output, output)
        np.maximum(source, output, out=output)  # exp(x) - 1 is never below x

    return run


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=TYPES))
