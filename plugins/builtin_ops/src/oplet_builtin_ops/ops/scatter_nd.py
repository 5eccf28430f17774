"""SCATTER_ND: updates added into zeros at given positions. Numerics: tflite/kernels/scatter_nd.cc"""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet_builtin_ops.shaping.positions import row_finder
from oplet_builtin_ops.shaping.segments import combined, grouped
from oplet_builtin_ops.shaping.shapes import Shape, Thunk, defer_or_resize, defer_or_run, ensure_operands, read_ints

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.BOOL, TensorType.INT8, TensorType.INT32, TensorType.INT64)


def _shapes(node: Node) -> list[Shape]:
    indices, updates = node.inputs[:2]
    shape = tuple(read_ints(node.inputs[2]))
    outer, depth = indices.shape[:-1], indices.shape[-1]
    ensure(depth <= len(shape), f"{indices} holds positions of {depth} axes, the shape {list(shape)} has {len(shape)}.")
    ensure(
        updates.shape == outer + shape[depth:],
        f"{updates} must have shape {list(outer + shape[depth:])}, a slice of {list(shape)} for each position in {indices}.",
    )
    return [shape]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    indices, updates, shape = node.inputs
    ensure_type(updates, *_TYPES)
    ensure_type(indices, TensorType.INT32)
    ensure_type(shape, TensorType.INT32)
    ensure(indices.ndim >= 1 and updates.ndim >= 1, f"{indices} and {updates} must both have at least one dimension.")
    ensure(shape.ndim == 1, f"{shape} must be a vector, the output's shape.")
    context.set_type(node.outputs[0], updates.type)
    defer_or_resize(context, node, [shape], _shapes)


def _bind(node: Node) -> Thunk:
    indices, updates, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    depth = indices.shape[-1]
    slice_size, count = prod(output.shape[depth:]), prod(indices.shape[:-1])
    target = output.reshape(prod(output.shape[:depth]), slice_size)
    slices, places = updates.reshape(count, slice_size), row_finder(node.inputs[0], depth, output.shape)

    def run() -> None:
        groups = grouped(places())
        target[...] = 0
        target[groups.ids] = combined(np.add, slices, groups)

    return run


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
