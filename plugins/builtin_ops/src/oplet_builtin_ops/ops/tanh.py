"""TANH. Numerics: tflite/kernels/activations.cc (TanhPrepare), internal/reference/integer_ops/tanh.h"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, Tensor, TensorType
from oplet.kernels.arrays import Thunk
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.arithmetic.lookup import sampled_table
from oplet_builtin_ops.arithmetic.sigmoid_table import input_scaling, tanh_int16
from oplet_builtin_ops.elementwise.activations import bind_lookup, prepare_lookup, prepare_unary

FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16)
_TYPES = (*FLOATS, TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def prepare(context: Context, node: Node) -> None:
    source, output = prepare_unary(context, node, *_TYPES)
    offer_in_place(node)
    if source.type == TensorType.INT16:
        scaling = input_scaling(source, output, shifts=(0, 1))
        prepare_lookup(node, lambda values: tanh_int16(values, scaling), scaling)
    elif source.type not in FLOATS:
        node.prepared = node.cached(("table", source.type, output.type), (), lambda: _table(source, output))


def _table(source: Tensor, output: Tensor) -> NDArray[Any]:
    return sampled_table(source.type, _tanh, source.scale, source.zero_point, output.scale, output.zero_point)


def _tanh(x: NDArray[Any]) -> NDArray[Any]:
    return np.tanh(x.astype(np.float64))


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    if node.inputs[0].type not in FLOATS:
        return bind_lookup(node)

    def run() -> None:
        np.tanh(source, output)

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=_TYPES,
    differences="float16 stays within 1, where LiteRT's default mode (XNNPACK) gives 1.001",
)
