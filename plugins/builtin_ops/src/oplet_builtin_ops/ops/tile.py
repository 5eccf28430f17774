"""TILE: the input repeated along each axis. Numerics: tflite/kernels/tile.cc"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk, copier, copies
from oplet.kernels.axes import along, read_ints
from oplet.kernels.operands import PLAIN_TYPES, ensure_operands, ensure_plain, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run

#: The numbers from which on several copies of long rows are faster than one of rows shorter than that; and the most bytes of an output that
#: is made so: numpy may copy what it cannot tell not to overlap, which for larger ones would take too much memory.
_MANY: Final = 1 << 12
_SHORT: Final = 64
_LARGE: Final = 1 << 22


def _shapes(node: Node) -> list[Shape]:
    source, multiples = node.inputs
    ensure(multiples.size == source.ndim, lambda: f"{multiples} must hold {source.ndim} values, one per axis of {source}.")
    times = read_ints(multiples)
    ensure(all(t >= 0 for t in times), f"the multiples {times} must not be negative.")
    return [tuple(dim * t for dim, t in zip(source.shape, times))]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, times = node.inputs
    ensure_same_type(source, node.outputs[0])
    ensure_plain(source, strings=True)
    ensure_type(times, TensorType.INT32, TensorType.INT64)
    defer_or_resize(context, node, [times], _shapes)


def _bind(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    times = read_ints(node.inputs[1])
    if output.size > _MANY and source.shape[-1] < _SHORT and output.nbytes <= _LARGE:
        return copies(list(_axis_by_axis(source, output, times)))
    # Each axis of the output as two, repetitions and values, so that one broadcast copy suffices.
    repeated = output.reshape([part for pair in zip(times, source.shape) for part in pair])
    values = source.reshape([part for dim in source.shape for part in (1, dim)])
    return copier(repeated, np.broadcast_to(values, repeated.shape))


def _axis_by_axis(source: Array, output: Array, times: Sequence[int]) -> Iterator[tuple[Array, Array]]:
    """Yield (target, source) copies that repeat what is already there along one axis after the other, last axis first."""
    yield output[tuple(slice(dim) for dim in source.shape)], source
    for axis in reversed(range(source.ndim)):
        if times[axis] > 1:
            first = tuple(slice(dim) for dim in source.shape[:axis])
            length, part = source.shape[axis], output[first]
            there, rest = part[along(axis, slice(length))], part[along(axis, slice(length, None))]
            shape = (*rest.shape[:axis], times[axis] - 1, length, *rest.shape[axis + 1 :])
            # A view, as an axis is divided.
            yield rest.reshape(shape), np.broadcast_to(np.expand_dims(there, axis), shape)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*PLAIN_TYPES, TensorType.STRING))
