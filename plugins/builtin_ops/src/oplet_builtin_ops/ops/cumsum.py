"""CUMSUM: running sums along an axis, from either end, including or excluding the value at the position itself.

Numerics: tflite/kernels/cumsum.cc
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.axes import along, read_int, resolve_axis
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.options import CumsumOptions
from oplet_builtin_ops.layers.program import Call, run_program

#: From so many parallel sums on, adding whole slices is faster, unless the axis is the last one.
_WIDE: Final = 64

_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, axis = node.inputs
    ensure_type(source, *_TYPES)
    ensure_type(axis, TensorType.INT32)
    ensure_same_type(source, node.outputs[0])
    ensure(axis.size == 1, f"{axis} must hold exactly one value, not {axis.size}.")
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    context.resize_tensor(node.outputs[0], source.shape)


def _bind(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    options = node.options(CumsumOptions)
    axis = resolve_axis(read_int(node.inputs[1]), source.ndim)
    if options.reverse:
        backwards = along(axis, slice(None, None, -1))
        source, output = source[backwards], output[backwards]
    start = output[along(axis, slice(0, 1))]
    if options.exclusive:
        source, output = source[along(axis, slice(0, -1))], output[along(axis, slice(1, None))]

    across = source.size // max(source.shape[axis], 1)

    def run() -> None:
        start.fill(0)
        np.add.accumulate(source, axis, output.dtype, output)

    return _by_slices(source, output, axis, start) if across >= _WIDE and axis != source.ndim - 1 else run


def _by_slices(source: Array, output: Array, axis: int, start: Array) -> Thunk:
    """Return a function that adds whole slices; faster than numpy's accumulate if values along the axis lie far apart in memory."""
    slices, sums = np.moveaxis(source, axis, 0), np.moveaxis(output, axis, 0)

    def calls() -> Iterator[Call]:
        yield start.fill, (0,)
        if len(slices):
            yield np.copyto, (sums[0], slices[0])
        for i in range(1, len(slices)):
            yield np.add, (sums[i - 1], slices[i], sums[i])

    return run_program(calls)


def bind(context: Context, node: Node) -> Thunk:
    return _bind(node) if node.inputs[1].is_constant else lambda: _bind(node)()


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
