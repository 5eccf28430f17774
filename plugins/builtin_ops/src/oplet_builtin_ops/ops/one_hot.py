"""ONE_HOT: a new axis with "on" at the index and "off" elsewhere. Numerics: tflite/kernels/one_hot.cc"""

from __future__ import annotations

from functools import partial

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk
from oplet.kernels.axes import read_int
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet.schema.options import OneHotOptions

_INDICES = (TensorType.INT32, TensorType.INT64)
_TYPES = (TensorType.FLOAT32, *_INDICES, TensorType.INT8, TensorType.UINT8, TensorType.BOOL)


def _axis(node: Node) -> int:
    axis, rank = node.options(OneHotOptions).axis, node.inputs[0].ndim + 1
    ensure(-1 <= axis < rank, f"axis is {axis}; it must be -1 or one of the output's {rank} axes.")
    return rank - 1 if axis == -1 else axis


def _shapes(node: Node) -> list[Shape]:
    shape, axis, depth = node.inputs[0].shape, _axis(node), read_int(node.inputs[1])
    ensure(depth >= 0, f"the depth is {depth} and must not be negative.")
    return [(*shape[:axis], depth, *shape[axis:])]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 4)
    indices, depth, on, off = node.inputs
    ensure_type(on, *_TYPES)
    ensure_type(off, on.type)
    ensure_type(indices, *_INDICES)
    ensure_type(depth, *_INDICES)
    for tensor in (depth, on, off):
        ensure(tensor.size == 1, f"{tensor} must hold exactly one value, not {tensor.size}.")
    _axis(node)
    context.set_type(node.outputs[0], on.type)
    defer_or_resize(context, node, [depth], _shapes)


def _bind(node: Node) -> Thunk:
    indices, _, on, off = (tensor.data for tensor in node.inputs)
    on, off = on.reshape(()), off.reshape(())
    output, axis = node.outputs[0].data, _axis(node)
    if not output.size:  # the new axis may have any length then
        return partial(output.fill, 0)
    expanded = np.expand_dims(indices, axis)
    steps = np.arange(output.shape[axis], dtype=np.int32).reshape([-1 if i == axis else 1 for i in range(output.ndim)])
    hot = np.empty(output.shape, np.bool_)

    # LiteRT truncates 64-bit indices to 32 bits.
    narrow = np.empty(expanded.shape, np.int32) if expanded.dtype.itemsize > 4 else expanded

    def run() -> None:
        if narrow is not expanded:
            np.copyto(narrow, expanded, "same_kind")
        np.equal(narrow, steps, hot)
        np.copyto(output, off)
        np.copyto(output, on, "same_kind", hot)

    return run


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:2])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
