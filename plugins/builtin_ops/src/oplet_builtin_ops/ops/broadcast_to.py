"""BROADCAST_TO: the input in a larger shape, its axes of length 1 repeated. Numerics: tflite/kernels/broadcast_to.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk, copier
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import PLAIN_TYPES, ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run

_TYPES = (*PLAIN_TYPES, TensorType.COMPLEX128)


def _shapes(node: Node) -> list[Shape]:
    source, shape = node.inputs
    ensure(shape.ndim == 1, lambda: f"{shape} must be a vector, the shape to broadcast to.")
    wanted = tuple(read_ints(shape))
    fits = source.ndim <= len(wanted) and all(
        dim in (1, into) for dim, into in zip(source.shape, wanted[len(wanted) - source.ndim :])
    )
    ensure(fits, f"Output shape must be broadcastable from input shape: {source} does not broadcast to {list(wanted)}.")
    return [wanted]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, shape = node.inputs
    ensure_type(shape, TensorType.INT32, TensorType.INT64)
    ensure_same_type(source, node.outputs[0])
    ensure(source.type in _TYPES, f"{source} is of type {source.type.name}, whose values this op does not move.")
    defer_or_resize(context, node, [shape], _shapes)


def _bind(node: Node) -> Thunk:
    output = node.outputs[0].data
    return copier(output, np.broadcast_to(node.inputs[0].data, output.shape))


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
