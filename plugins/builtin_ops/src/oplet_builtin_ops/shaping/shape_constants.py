"""SHAPE: the input's shape as a vector; RANK: the number of its dimensions. Both are known before anything runs.

Numerics: tflite/kernels/shape.cc, tflite/kernels/rank.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import ShapeOptions


def _prepare_shape(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    output = node.outputs[0]
    wanted = node.options(ShapeOptions).out_type
    ensure(wanted in (TensorType.INT32, TensorType.INT64), f"out_type is {wanted!r}; a shape is INT32 or INT64.")
    # As in LiteRT, the option decides, whatever type the model declares.
    output.type, output.dtype = wanted, np.dtype(np.int32 if wanted == TensorType.INT32 else np.int64)
    shape = np.array(node.inputs[0].shape, output.dtype)
    context.resize_tensor(output, shape.shape)
    context.set_constant(output, shape)


def _bind(context: Context, node: Node) -> Thunk:
    return lambda: None


def _prepare_rank(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    output = node.outputs[0]
    context.set_type(output, TensorType.INT32)
    context.resize_tensor(output, ())
    context.set_constant(output, np.array(node.inputs[0].ndim, np.int32))


SHAPE = Registration(prepare=_prepare_shape, bind=_bind, pure=True)
RANK = Registration(prepare=_prepare_rank, bind=_bind, pure=True)
