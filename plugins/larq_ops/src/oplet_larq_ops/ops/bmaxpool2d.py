"""LceBMaxPool2d: the largest of each window of packed values, which is the AND of their words: a bit is 1 where all are -1.

What lies outside of the map does not count.

Numerics: larq_compute_engine/core/bmaxpool.h
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import integer
from oplet.kernels.windows import Axis, window_axis
from oplet.schema.enums import Padding


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 1)
    source, output = node.inputs[0], node.outputs[0]
    for tensor in (source, output):
        ensure_type(tensor, TensorType.INT32)
    ensure(source.ndim == 4, lambda: f"{source} must have 4 dimensions.")
    options = node.custom_map()
    padding = Padding(integer(options, "padding", most=1, default=0))
    height, width = (
        window_axis(name, padding, size, integer(options, f"filter_{name}"), integer(options, f"stride_{name}"))
        for name, size in zip(("height", "width"), source.shape[1:3])
    )
    batch, _, columns, words = source.shape
    context.resize_tensor(output, (batch, height.out, width.out, words))
    node.prepared = height, width, context.add_temporary(node, (batch, height.out, columns, words), TensorType.INT32)


def bind(context: Context, node: Node) -> Thunk:
    height, width, temporary = node.prepared
    source, between, output = node.inputs[0].data, temporary.data, node.outputs[0].data

    def run() -> None:
        _reduce(height, source.swapaxes(0, 1), between.swapaxes(0, 1))
        _reduce(width, between.transpose(2, 0, 1, 3), output.transpose(2, 0, 1, 3))

    return run


def _reduce(axis: Axis, source: Array, output: Array) -> None:
    """Reduce the windows along the first dimension."""
    output.fill(-1)
    for large, small in _taps(axis):
        checkpoint()
        np.bitwise_and(output[small], source[large], output[small])


def _taps(axis: Axis) -> Iterator[tuple[slice, slice]]:
    """Yield, for each tap that meets the map in some window, where it meets it and in which windows."""
    last = (axis.out - 1) * axis.stride
    for tap in range(max(0, axis.before - last), min(axis.filter, axis.before + axis.size)):
        first = tap - axis.before  # where the first window has this tap
        begin = max(0, -(first // axis.stride))
        end = min(axis.out, -((first - axis.size) // axis.stride))
        if begin < end:
            at = first + begin * axis.stride
            yield slice(at, at + (end - begin - 1) * axis.stride + 1, axis.stride), slice(begin, end)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.INT32,))
