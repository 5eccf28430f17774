"""Ops on shapes: Shape, ShapeN, Size, Rank, BroadcastArgs, BroadcastGradientArgs, ConcatOffset and EnsureShape.

Numerics: tensorflow/core/kernels/{shape_ops.h,bcast_ops.cc,concat_op.cc}
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from oplet import Node, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import read_int, resolve_axis
from oplet_flex_ops.kernel import computed, shaped, viewed
from oplet_flex_ops.signature import INDICES


def _constants(node: Node, values: list[Any]) -> Thunk:
    """Return a function that writes a constant, known from the shapes, into each output."""
    pairs = [(output.data, np.array(value, output.dtype)) for output, value in zip(node.outputs, values)]

    def run() -> None:
        for target, value in pairs:
            target[...] = value

    return run


def _shape_shapes(node: Node, given: Any) -> list[Shape]:
    for tensor, output in zip(node.inputs, node.outputs):
        top = np.iinfo(output.dtype).max
        ensure(all(size <= top for size in tensor.shape), f"{output} cannot hold the shape of {tensor}.")
    return [(tensor.ndim,) for tensor in node.inputs]


def _shape_bind(node: Node, given: Any) -> Thunk:
    return _constants(node, [tensor.shape for tensor in node.inputs])


def _size_shapes(node: Node, given: Any) -> list[Shape]:
    output, source = node.outputs[0], node.inputs[0]
    ensure(source.size <= np.iinfo(output.dtype).max, f"{output} cannot hold the number of elements of {source}.")
    return [()]


SHAPE = shaped("Shape", "input: T -> output: out_type", _shape_shapes, out_type=INDICES)(_shape_bind)
SHAPEN = shaped("ShapeN", "input: N*T -> output: N*out_type", _shape_shapes, out_type=INDICES)(_shape_bind)
SIZE = shaped("Size", "input: T -> output: out_type", _size_shapes, out_type=INDICES)(
    lambda node, given: _constants(node, [node.inputs[0].size])
)
RANK = shaped("Rank", "input: T -> output: INT32", lambda node, given: [()])(
    lambda node, given: _constants(node, [node.inputs[0].ndim])
)


def _broadcast(first: Array, second: Array) -> list[tuple[int, int, int]]:
    """Return (first size, second size, broadcast size) for each axis of two broadcasting shapes."""
    ensure(first.size <= 254 and second.size <= 254, "a tensor has at most 254 dimensions.")
    rank = max(first.size, second.size)
    sizes = [[1] * (rank - part.size) + part.tolist() for part in (first, second)]
    found = []
    for a, b in zip(*sizes):
        ensure(a == b or 1 in (a, b), f"the shapes {first.tolist()} and {second.tolist()} cannot be broadcast together.")
        found.append((a, b, b if a == 1 else a))
    return found


@computed("BroadcastArgs", "s0: T[1], s1: T[1] -> r0: T", T=INDICES)
def BROADCASTARGS(given: Any, first: Array, second: Array) -> Array:
    return np.array([size for _, _, size in _broadcast(first, second)], first.dtype)


@computed("BroadcastGradientArgs", "s0: T[1], s1: T[1] -> r0: T, r1: T", T=INDICES)
def BROADCASTGRADIENTARGS(given: Any, first: Array, second: Array) -> list[Array]:
    axes = _broadcast(first, second)
    if first.tolist() == second.tolist():
        return [np.empty(0, first.dtype)] * 2
    return [
        np.array([axis for axis, (a, b, _) in enumerate(axes) if (a, b)[side] == 1 or (a, b) == (1, 1)], first.dtype)
        for side in (0, 1)
    ]


def _offset_shapes(node: Node, given: Any) -> list[Shape]:
    shapes = {tensor.shape for tensor in node.inputs[1:]}
    ensure(len(shapes) == 1, f"the shapes to concatenate must have one rank, not {sorted(shapes)}.")
    return [tensor.shape for tensor in node.inputs[1:]]


@shaped(
    "ConcatOffset", "concat_dim: INT32[0], shape: N*shape_type[1] -> offset: N*shape_type", _offset_shapes, shape_type=INDICES
)
def CONCATOFFSET(node: Node, given: Any) -> Thunk:
    axis, sources = node.inputs[0], [tensor.data for tensor in node.inputs[1:]]
    outputs = [output.data for output in node.outputs]

    def run() -> None:
        along = resolve_axis(read_int(axis), sources[0].size, "concat_dim")
        for source in sources:
            different = (source != sources[0]).nonzero()[0].tolist()
            ensure(
                different in ([], [along]), f"the shapes {sources[0].tolist()} and {source.tolist()} differ beside axis {along}."
            )
        for output, start in zip(outputs, accumulate([0, *(int(source[along]) for source in sources)])):
            output.fill(0)
            output[along] = start

    return run


def _ensured(node: Node, wanted: Shape | None) -> list[Shape]:
    shape = node.inputs[0].shape
    ensure(
        wanted is None or (len(wanted) == len(shape) and all(a in (-1, b) for a, b in zip(wanted, shape))),
        f"{node.inputs[0]} is not of the shape {wanted} that the model asserts.",
    )
    return [shape]


ENSURESHAPE = viewed("EnsureShape", "input: T -> output: T", _ensured, lambda attributes: attributes.shape("shape"))(
    lambda node, given: [node.inputs[0].data]
)
