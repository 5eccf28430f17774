"""TILE: the input repeated along each axis. Numerics: tflite/kernels/tile.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk, copier
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import PLAIN_TYPES, ensure_operands, ensure_plain, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run


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
    # Each axis of the output as two, repetitions and values, so that one broadcast copy suffices.
    pairs = [(t, dim) for t, dim in zip(read_ints(node.inputs[1]), source.shape)]
    repeated = output.reshape([part for pair in pairs for part in pair])
    values = source.reshape([part for _, dim in pairs for part in (1, dim)])
    return copier(repeated, np.broadcast_to(values, repeated.shape))


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*PLAIN_TYPES, TensorType.STRING))
