"""Ops that join and split tensors: Concat, ConcatV2, Split, SplitV, Pack and Unpack.

Numerics: tensorflow/core/kernels/{concat_op.cc,split_op.cc,split_v_op.cc,pack_op.cc,unpack_op.cc}
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from oplet import Node, Registration, Tensor, TensorType, ensure
from oplet.kernels.arrays import Array, Shape, Thunk, copies
from oplet.kernels.axes import along, read_int, read_ints, resolve_axis
from oplet_flex_ops.kernel import shaped, viewed
from oplet_flex_ops.signature import INDICES


def _pieces(starts: Sequence[int], array: Array, axis: int) -> list[Array]:
    return [array[along(axis, slice(start, stop))] for start, stop in pairwise(starts)]


def _concat(op: str, text: str, axis_at: int) -> Registration:
    def parts(node: Node) -> tuple[list[Tensor], int]:
        sources = [tensor for position, tensor in enumerate(node.inputs) if position != axis_at % len(node.inputs)]
        return sources, resolve_axis(read_int(node.inputs[axis_at]), sources[0].ndim)

    def shapes(node: Node, given: Any) -> list[Shape]:
        sources, axis = parts(node)
        first = sources[0].shape
        for source in sources:
            fits = source.ndim == len(first) and all(a == b for at, (a, b) in enumerate(zip(source.shape, first)) if at != axis)
            ensure(fits, f"{source} and {sources[0]} may differ along axis {axis} only.")
        return [(*first[:axis], sum(source.shape[axis] for source in sources), *first[axis + 1 :])]

    def bind(node: Node, given: Any) -> Thunk:
        sources, axis = parts(node)
        starts = list(accumulate([0, *(source.shape[axis] for source in sources)]))
        targets = _pieces(starts, node.outputs[0].data, axis)
        return copies([(target, source.data) for target, source in zip(targets, sources)])

    return shaped(op, text, shapes, Tidx=INDICES)(bind)


CONCAT = _concat("Concat", "concat_dim: INT32[0]!, values: N*T -> output: T", 0)
CONCATV2 = _concat("ConcatV2", "values: N*T, axis: Tidx! -> output: T", -1)


def _split_shapes(node: Node, given: Any) -> list[Shape]:
    value, count = node.inputs[1], len(node.outputs)
    axis = resolve_axis(read_int(node.inputs[0]), value.ndim, "split_dim")
    size = value.shape[axis]
    ensure(count > 0 and size % count == 0, f"axis {axis} of {value} has size {size}, which {count} pieces do not share evenly.")
    return [(*value.shape[:axis], size // count, *value.shape[axis + 1 :])] * count


@viewed("Split", "split_dim: INT32[0]!, value: T -> output: num_split*T", _split_shapes)
def SPLIT(node: Node, given: Any) -> list[Array]:
    value, count = node.inputs[1], len(node.outputs)
    axis = resolve_axis(read_int(node.inputs[0]), value.ndim)
    return np.split(value.data, count, axis)


def _split_sizes(node: Node) -> tuple[int, list[int]]:
    value, sizes = node.inputs[0], read_ints(node.inputs[1])
    axis = resolve_axis(read_int(node.inputs[2]), value.ndim, "split_dim")
    length = value.shape[axis]
    ensure(
        node.inputs[1].ndim == 1 and len(sizes) == len(node.outputs) and sizes.count(-1) <= 1,
        f"size_splits is {sizes}; it must have a size for each of the {len(node.outputs)} outputs, of which one may be -1.",
    )
    if -1 in sizes:
        sizes[sizes.index(-1)] = length - sum(size for size in sizes if size != -1)
    ensure(
        min(sizes, default=0) >= 0 and sum(sizes) == length,
        f"size_splits is {read_ints(node.inputs[1])}, which does not share the {length} of axis {axis} of {value}.",
    )
    return axis, sizes


def _split_v_shapes(node: Node, given: Any) -> list[Shape]:
    axis, sizes = _split_sizes(node)
    shape = node.inputs[0].shape
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


@viewed(
    "SplitV",
    "value: T, size_splits: Tlen!, split_dim: INT32[0]! -> output: num_split*T",
    _split_v_shapes,
    Tlen=(TensorType.INT64, TensorType.INT32, TensorType.INT8),
)
def SPLITV(node: Node, given: Any) -> list[Array]:
    axis, sizes = _split_sizes(node)
    return _pieces(list(accumulate([0, *sizes])), node.inputs[0].data, axis)


def _pack_shapes(node: Node, axis: int) -> list[Shape]:
    first = node.inputs[0]
    for tensor in node.inputs:
        ensure(tensor.shape == first.shape, f"{tensor} and {first} must have one shape to be packed.")
    at = resolve_axis(axis, first.ndim + 1)
    return [(*first.shape[:at], len(node.inputs), *first.shape[at:])]


@shaped("Pack", "values: N*T -> output: T", _pack_shapes, lambda attributes: attributes.integer("axis", default=0))
def PACK(node: Node, axis: int) -> Thunk:
    output, at = node.outputs[0].data, resolve_axis(axis, node.inputs[0].ndim + 1)
    return copies([(output[along(at, number, ...)], tensor.data) for number, tensor in enumerate(node.inputs)])


def _unpack_shapes(node: Node, axis: int) -> list[Shape]:
    value, count = node.inputs[0], len(node.outputs)
    at = resolve_axis(axis, value.ndim)
    ensure(value.shape[at] == count, f"axis {at} of {value} has size {value.shape[at]}, but num is {count}.")
    return [(*value.shape[:at], *value.shape[at + 1 :])] * count


@viewed("Unpack", "value: T -> output: num*T", _unpack_shapes, lambda attributes: attributes.integer("axis", default=0))
def UNPACK(node: Node, axis: int) -> list[Array]:
    value = node.inputs[0]
    at = resolve_axis(axis, value.ndim)
    return [value.data[along(at, number, ...)] for number in range(len(node.outputs))]
