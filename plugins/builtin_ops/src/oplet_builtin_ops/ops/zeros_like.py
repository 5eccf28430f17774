"""ZEROS_LIKE: zeros in the input's shape. Numerics: tflite/kernels/zeros_like.cc"""

from __future__ import annotations

from functools import partial

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands

_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *_TYPES)
    context.set_type(output, source.type)
    context.resize_tensor(output, source.shape)


def bind(context: Context, node: Node) -> Thunk:
    return partial(node.outputs[0].data.fill, 0)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
