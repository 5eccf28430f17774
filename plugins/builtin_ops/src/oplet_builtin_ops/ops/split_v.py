"""SPLIT_V: pieces of given sizes along an axis; one size of -1 is computed from the others. Numerics: tflite/kernels/split_v.cc"""

from __future__ import annotations

from itertools import accumulate

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk, copies
from oplet.kernels.axes import along, read_int, read_ints, resolve_axis
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet.schema.options import SplitVOptions

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def _axis(node: Node) -> int:
    return resolve_axis(read_int(node.inputs[2]), node.inputs[0].ndim)


def _sizes(node: Node) -> list[int]:
    source, axis, sizes = node.inputs[0], _axis(node), read_ints(node.inputs[1])
    length, known = source.shape[axis], sum(size for size in sizes if size != -1)
    ensure(sizes.count(-1) <= 1, f"the sizes {sizes} have more than one -1.")
    if -1 in sizes:
        sizes[sizes.index(-1)] = length - known
    ensure(
        sum(sizes) == length and all(size >= 0 for size in sizes),
        f"the sizes {sizes} must not be negative and must add up to {length}, the length of axis {axis} of {source}.",
    )
    return sizes


def _shapes(node: Node) -> list[Shape]:
    shape, axis = node.inputs[0].shape, _axis(node)
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in _sizes(node)]


def prepare(context: Context, node: Node) -> None:
    count = node.options(SplitVOptions).num_splits
    ensure(count > 0, f"num_splits is {count} and must be above zero.")
    ensure_operands(node, 3, count)
    source, sizes, axis = node.inputs
    ensure_type(source, *_TYPES)
    ensure_type(sizes, TensorType.INT32, TensorType.INT64)
    ensure_type(axis, TensorType.INT32)
    ensure(sizes.shape == (count,), f"{sizes} must be a vector of {count} sizes (num_splits).")
    for output in node.outputs:
        context.set_type(output, source.type)
    defer_or_resize(context, node, [sizes, axis], _shapes)


def _bind(node: Node) -> Thunk:
    source, axis = node.inputs[0].data, _axis(node)
    ends = list(accumulate(_sizes(node)))
    starts = [0, *ends]
    pairs = [(output.data, source[along(axis, slice(*at))]) for output, at in zip(node.outputs, zip(starts, ends))]
    return copies(pairs)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
