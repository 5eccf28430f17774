"""Ops that create tensors: Fill, Range, LinSpace, OneHot, ZerosLike, OnesLike, Empty, Diag, DiagPart and BroadcastTo.

Numerics: tensorflow/core/kernels/{constant_op.cc,sequence_ops.cc,one_hot_op.cc,diag_op.cc,broadcast_to_op.cc}
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oplet import Node, TensorType, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import read_int, read_ints, resolve_axis
from oplet_flex_ops.kernel import filled, shaped, viewed
from oplet_flex_ops.signature import FLOATS, INDICES, NUMBERS, REALS

_VALUES = (*NUMBERS, TensorType.BOOL, TensorType.STRING)


def _zero(dtype: Any) -> Any:
    return b"" if dtype.kind == "O" else np.zeros((), dtype)


def _sizes(node: Node, position: int) -> Shape:
    sizes = read_ints(node.inputs[position])
    ensure(len(sizes) <= 254 and all(size >= 0 for size in sizes), f"{node.inputs[position]} holds {sizes}, which is no shape.")
    return tuple(sizes)


def _fill_shapes(node: Node, given: Any) -> list[Shape]:
    value = node.inputs[1]
    ensure(value.size == 1 and value.ndim <= 1, f"the value {value} must be a scalar.")
    return [_sizes(node, 0)]


@filled("Fill", "dims: index_type[1]!, value: T -> output: T", _fill_shapes, index_type=INDICES)
def FILL(given: Any, outputs: list[Array], dims: Array, value: Array) -> None:
    outputs[0].fill(value.item() if value.dtype == object else value.reshape(())[()])


EMPTY = filled("Empty", "shape: INT32[1]! -> output: dtype", lambda node, given: [_sizes(node, 0)], dtype=_VALUES)(
    lambda given, outputs, shape: outputs[0].fill(_zero(outputs[0].dtype))
)
ZEROSLIKE = filled("ZerosLike", "x: T -> y: T", lambda node, given: [node.inputs[0].shape], T=_VALUES)(
    lambda given, outputs, x: outputs[0].fill(_zero(x.dtype))
)
ONESLIKE = filled("OnesLike", "x: T -> y: T", lambda node, given: [node.inputs[0].shape], T=(*NUMBERS, TensorType.BOOL))(
    lambda given, outputs, x: outputs[0].fill(1)
)


def _range_shapes(node: Node, given: Any) -> list[Shape]:
    for tensor in node.inputs:
        ensure(tensor.size == 1 and tensor.ndim <= 1, f"{tensor} must be a scalar.")
    dtype = node.inputs[0].dtype
    start, limit, delta = (tensor.data.reshape(())[()] for tensor in node.inputs)
    ensure(delta != 0, "the step (delta) is 0.")
    ensure(start <= limit if delta > 0 else start >= limit, f"the range from {start} in steps of {delta} goes away from {limit}.")
    if dtype.kind in "iu":
        return [(-(-abs(int(limit) - int(start)) // abs(int(delta))),)]
    with np.errstate(all="ignore"):
        count = float(np.ceil(np.abs((limit - start) / delta)))
    ensure(math.isfinite(count), f"the range from {start} to {limit} in steps of {delta} has no size.")
    return [(int(count),)]


@filled("Range", "start: Tidx!, limit: Tidx!, delta: Tidx! -> output: Tidx", _range_shapes, Tidx=REALS)
def RANGE(given: Any, outputs: list[Array], start: Array, limit: Array, delta: Array) -> None:
    output = outputs[0]
    output[...] = np.arange(output.size)
    with np.errstate(all="ignore"):
        np.multiply(output, delta.reshape(()), output)
        np.add(output, start.reshape(()), output)


def _lin_space_shapes(node: Node, given: Any) -> list[Shape]:
    count = read_int(node.inputs[2])
    ensure(count > 0, f"num is {count}; a LinSpace has at least one value.")
    return [(count,)]


@filled("LinSpace", "start: T[0], stop: T[0], num: Tidx[0]! -> output: T", _lin_space_shapes, T=FLOATS, Tidx=INDICES)
def LINSPACE(given: Any, outputs: list[Array], start: Array, stop: Array, num: Array) -> None:
    output, count = outputs[0], outputs[0].size
    output[...] = np.arange(count)
    if count > 1:
        with np.errstate(all="ignore"):
            np.multiply(output, (stop - start) / output.dtype.type(count - 1), output)
    np.add(output, start, output)
    if count > 1:
        output[-1] = stop


def _one_hot_axis(node: Node, axis: int) -> int:
    return resolve_axis(axis, node.inputs[0].ndim + 1)


def _one_hot_shapes(node: Node, axis: int) -> list[Shape]:
    shape, depth, at = node.inputs[0].shape, read_int(node.inputs[1]), _one_hot_axis(node, axis)
    ensure(depth >= 0, f"the depth is {depth} and must not be negative.")
    return [(*shape[:at], depth, *shape[at:])]


@shaped(
    "OneHot",
    "indices: TI, depth: INT32[0]!, on_value: T[0], off_value: T[0] -> output: T",
    _one_hot_shapes,
    lambda attributes: attributes.integer("axis", least=-1, default=-1),
    TI=(TensorType.INT64, TensorType.INT32, TensorType.UINT8, TensorType.INT8),
)
def ONEHOT(node: Node, axis: int) -> Thunk:
    indices, _, on, off = (tensor.data for tensor in node.inputs)
    output, at = node.outputs[0].data, _one_hot_axis(node, axis)
    apart, numbers = np.expand_dims(indices, at), np.arange(output.shape[at]).reshape(-1, *[1] * (indices.ndim - at))
    hot = np.empty(output.shape, np.bool_)

    def run() -> None:
        np.equal(apart, numbers, hot)
        output[...] = off
        np.copyto(output, on, where=hot)

    return run


_DIAGONAL = (
    *FLOATS, TensorType.INT32, TensorType.INT64, TensorType.COMPLEX64, TensorType.COMPLEX128,
)  # fmt: skip


def _diag_shapes(node: Node, given: Any) -> list[Shape]:
    shape = node.inputs[0].shape
    ensure(1 <= len(shape) <= 12, f"{node.inputs[0]} must have 1 to 12 dimensions.")
    return [shape + shape]


@filled("Diag", "diagonal: T -> output: T", _diag_shapes, T=_DIAGONAL)
def DIAG(given: Any, outputs: list[Array], diagonal: Array) -> None:
    outputs[0].fill(0)
    outputs[0].reshape(-1)[:: diagonal.size + 1] = diagonal.reshape(-1)


def _diag_part_shapes(node: Node, given: Any) -> list[Shape]:
    source = node.inputs[0]
    half = source.ndim // 2
    ensure(
        source.ndim and source.ndim % 2 == 0 and source.shape[:half] == source.shape[half:],
        f"{source} must have its first half of dimensions again as its second half.",
    )
    return [source.shape[:half]]


@viewed("DiagPart", "input: T -> diagonal: T", _diag_part_shapes, T=_DIAGONAL)
def DIAGPART(node: Node, given: Any) -> list[Array]:
    source, output = np.ascontiguousarray(node.inputs[0].data), node.outputs[0]
    return [source.reshape(-1)[:: output.size + 1].reshape(output.shape)]


def _broadcast_shapes(node: Node, given: Any) -> list[Shape]:
    source, sizes = node.inputs[0], _sizes(node, 1)
    shared = sizes[len(sizes) - source.ndim :] if source.ndim <= len(sizes) else ()
    ensure(
        source.ndim <= len(sizes) <= 32 and all(a in (1, b) for a, b in zip(source.shape, shared)),
        f"{source} cannot be broadcast to {list(sizes)}.",
    )
    return [sizes]


BROADCASTTO = viewed("BroadcastTo", "input: T, shape: Tidx[1]! -> output: T", _broadcast_shapes, Tidx=INDICES)(
    lambda node, given: [np.broadcast_to(node.inputs[0].data, node.outputs[0].shape)]
)
