"""EXP. Numerics: tflite/kernels/exp.cc"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.elementwise import bind_table, function_table, prepare_elementwise

_TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.INT16)


def _exp(x: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        return np.exp(x.astype(np.float64))


def prepare(context: Context, node: Node) -> None:
    source, output = prepare_elementwise(context, node, *_TYPES, derive=True)
    offer_in_place(node)
    if source.type == TensorType.INT16:
        ensure_zero_point_is_zero(source, output)
    if source.type != TensorType.FLOAT32:
        node.prepared = node.cached(("table", source.type, output.type), (), lambda: function_table(source, output, _exp))


def bind(context: Context, node: Node) -> Thunk:
    if node.inputs[0].type != TensorType.FLOAT32:
        return bind_table(node)
    source, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        np.exp(source, output)

    return run


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES))
