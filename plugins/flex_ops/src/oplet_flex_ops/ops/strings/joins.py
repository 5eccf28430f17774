"""StringJoin, ReduceJoin and UnsortedSegmentJoin: strings joined across inputs, along axes, or by the segments they belong to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import repeat

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import read_int, read_ints, resolve_axis
from oplet.kernels.limits import listed, paced
from oplet.kernels.operands import ensure_same_shape
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet.kernels.strings import StringMeter
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.texts.elementwise import checked, put_strings

#: Bytes of a reference, of a list of a few, and of a number with its reference.
_REFERENCE, _LIST, _NUMBER = 8, 96, 40
#: Strings of a row above which the clock is looked at within it.
_WIDE = 4096
_INTEGERS = (TensorType.INT32, TensorType.INT64)


def prepare_join(context: Context, node: Node) -> None:
    """Check the node's inputs: strings of one shape, or scalars that broadcast."""
    attributes = checked_attributes(node, len(node.inputs))
    attributes.integer("N", least=len(node.inputs), most=len(node.inputs))
    ensure(node.inputs, "there is nothing to join.")
    for tensor in (*node.inputs, node.outputs[0]):
        ensure_type(tensor, TensorType.STRING)
    node.prepared = attributes.raw("separator", default=b"")
    whole = [tensor for tensor in node.inputs if tensor.ndim]
    ensure_same_shape(*whole)
    context.resize_tensor(node.outputs[0], whole[0].shape if whole else ())


def bind_join(context: Context, node: Node) -> Thunk:
    separator, target = node.prepared, node.outputs[0].data
    sources = [tensor.data for tensor in node.inputs]

    def run() -> None:
        meter = StringMeter()
        lists: dict[int, list[bytes]] = {}
        for source in {id(source): source for source in sources}.values():
            meter.hold(_REFERENCE * source.size * (len(lists) + 1))
            lists[id(source)] = source.ravel().tolist()
        columns = [lists[id(source)] if source.ndim else repeat(source.item(), target.size) for source in sources]
        made = []
        for parts in zip(*columns):
            made.append(meter.join(separator, parts))
        put_strings(target, made)

    return run


def prepare_reduce(context: Context, node: Node) -> None:
    """Check the node's inputs: strings, and the axes to join along, the first one innermost."""
    attributes = checked_attributes(node, 2)
    strings, axes = node.inputs
    ensure_type(strings, TensorType.STRING)
    ensure_type(axes, TensorType.INT32)
    ensure(axes.ndim <= 1, lambda: f"the axes {axes} must be a number or a vector.")
    ensure_type(node.outputs[0], TensorType.STRING)
    attributes.raw("separator", default=b"")
    defer_or_resize(context, node, [axes], partial(_reduced_shapes, keep=attributes.flag("keep_dims", default=False)))


def _axes(node: Node) -> list[int]:
    rank = node.inputs[0].ndim
    axes = [resolve_axis(axis, rank, "the axis of reduction_indices") for axis in read_ints(node.inputs[1])]
    ensure(len(set(axes)) == len(axes), lambda: f"the axes {axes} of reduction_indices name an axis twice.")
    return axes


def _reduced_shapes(node: Node, keep: bool) -> Sequence[Shape]:
    axes = _axes(node)
    shape = node.inputs[0].shape
    return [tuple(1 if at in axes else size for at, size in enumerate(shape) if keep or at not in axes)]


def bind_reduce(context: Context, node: Node) -> Thunk:
    attributes = checked_attributes(node, 2)
    separator = attributes.raw("separator", default=b"")
    keep = attributes.flag("keep_dims", default=False)
    return defer_or_run(context, node, partial(_reduced_shapes, keep=keep), partial(_reduction, separator=separator))


def _reduction(node: Node, separator: bytes) -> Thunk:
    axes, target, source = _axes(node), node.outputs[0].data, node.inputs[0].data
    if not axes:  # each string by itself
        return lambda: put_strings(target, source.ravel().tolist())
    kept = [axis for axis in range(source.ndim) if axis not in axes]
    each = math.prod(source.shape[axis] for axis in axes)
    rows: Array = source.transpose(kept + axes[::-1])

    def run() -> None:
        meter, made = StringMeter(), []
        meter.hold(2 * _REFERENCE * rows.size)
        strings = rows.ravel().tolist()
        for at in range(target.size):
            parts = strings[at * each : (at + 1) * each]
            made.append(meter.join(separator, parts))
        put_strings(target, made)

    return run


def prepare_segments(context: Context, node: Node) -> None:
    """Check the node's inputs: strings, segment ids, number of segments."""
    attributes = checked_attributes(node, 3)
    strings, segments, count = node.inputs
    ensure_type(strings, TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.STRING)
    for name, tensor in (("Tindices", segments), ("Tnumsegments", count)):
        ensure_type(tensor, *_INTEGERS)
        attributes.ensure_type(name, tensor)
    attributes.raw("separator", default=b"")
    ensure(count.size == 1, lambda: f"the number of segments, {count}, must be one number.")
    defer_or_resize(context, node, [count], _segment_shapes)


def _segment_shapes(node: Node) -> Sequence[Shape]:
    strings, segments, _ = node.inputs
    ensure(
        segments.ndim >= 1 and strings.shape[: segments.ndim] == segments.shape,
        lambda: f"the segments {segments} must be as many as the rows of {strings}: of the first axes of its shape.",
    )
    count = read_int(node.inputs[2])
    ensure(count >= 0, lambda: f"there cannot be {count} segments.")
    return [(count, *strings.shape[segments.ndim :])]


def bind_segments(context: Context, node: Node) -> Thunk:
    separator = checked_attributes(node, 3).raw("separator", default=b"")
    return defer_or_run(context, node, _segment_shapes, partial(_segment_join, separator=separator))


def _segment_join(node: Node, separator: bytes) -> Thunk:
    strings, segments, target = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data

    def run() -> None:
        count, width = target.shape[0], math.prod(target.shape[1:])
        meter = StringMeter()
        meter.hold(_LIST * target.size + 2 * _REFERENCE * strings.size + _NUMBER * segments.size)
        items, ids = strings.ravel().tolist(), listed(segments)
        outside = segments[(segments < 0) | (segments >= count)]
        ensure(not outside.size, lambda: f"a row is of segment {outside[0]}; there are {count} segments, from 0 on.")
        parts: list[list[bytes]] = [[] for _ in paced(range(target.size), 4096)]
        for row, number in enumerate(checked(ids)):
            for column in range(width) if width < _WIDE else paced(range(width), 4096):
                parts[number * width + column].append(items[row * width + column])
        put_strings(target, [meter.join(separator, part) for part in parts])

    return run


STRINGJOIN = Registration(prepare=prepare_join, bind=bind_join, pure=True)
REDUCEJOIN = Registration(prepare=prepare_reduce, bind=bind_reduce, pure=True)
UNSORTEDSEGMENTJOIN = Registration(prepare=prepare_segments, bind=bind_segments, pure=True)
