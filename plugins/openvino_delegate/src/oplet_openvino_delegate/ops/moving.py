"""Operators that only move values: reshapes, slices, permutations, borders, blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from openvino import opset13 as ov

from oplet import Node, Tensor
from oplet.schema.enums import ActivationFunctionType, MirrorPadMode
from oplet.schema.options import (
    ConcatenationOptions,
    DepthToSpaceOptions,
    GatherOptions,
    MirrorPadOptions,
    PackOptions,
    SpaceToDepthOptions,
    StridedSliceOptions,
    UnpackOptions,
)
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.graph import IN_PLANES, GraphBuilder, Value
from oplet_openvino_delegate.translators import FLOAT, MOVED, Translate, axes_of, integers, refuses_rescaling, translates

__all__: list[str] = []


def _moves(*names: str, **attributes: Any) -> Callable[[Translate], Translate]:
    """Register the decorated function for operators that move quantized values, too, as they are."""
    return translates(*names, types=MOVED, layer_of_8_bits=True, **attributes)


def _cut(graph: GraphBuilder, data: Tensor, out: Tensor, parts: Sequence[slice]) -> None:
    """Add a strided slice of `data`, by one slice per dimension, as the value of `out`, which may lack dimensions of size 1."""
    if not parts:
        graph.put(out, graph.reshaped(graph.value(data), out.shape))
        return
    # Behind the first element is what OpenVINO calls far before it.
    begin, end, step = ([getattr(part, name) for part in parts] for name in ("start", "stop", "step"))
    end = [-(2**31) if stop is None or stop < 0 else stop for stop in end]
    planes = graph.in_planes([data]) and out.ndim == 4
    axes = [IN_PLANES[axis] if planes else axis for axis in range(len(parts))]
    numbers = (graph.constant(np.array(values, np.int64)) for values in (begin, end, step, axes))
    made = ov.slice(graph.planes(data) if planes else graph.value(data), *numbers)
    if planes:
        graph.put_planes(out, made)
    else:
        graph.put(out, graph.reshaped(made.output(0), out.shape))


def _refuses_reshape(node: Node) -> str:
    data, out = node.inputs[0], node.outputs[0]
    return refuses_rescaling(node) if data.size == out.size else f"{data} does not become {out}"


@_moves("EXPAND_DIMS", refuses=_refuses_reshape, inputs=(2, 2), constants=(1,))
@_moves("RESHAPE", refuses=_refuses_reshape, inputs=(1, 2), constants=(1,))
@_moves("SQUEEZE", newest=2, refuses=_refuses_reshape)
def _reshape(graph: GraphBuilder, node: Node) -> None:
    """Translate what only changes the shape, to the one that the runtime computed."""
    out = node.outputs[0]
    graph.put(out, graph.reshaped(graph.flat(node.inputs[0]), out.shape))


def _split(name: str, *, data: int, axis: int, newest: int, inputs: int) -> None:
    """Register an operator that splits its input `data` into its outputs, along the axis in its input `axis`."""

    def refuses(node: Node) -> str:
        cut_up, along = node.inputs[data], node.inputs[axis]
        axes = axes_of(integers(along), cut_up.ndim) if along.size == 1 else None
        if not axes or any(out.ndim != cut_up.ndim for out in node.outputs):
            return f"{along} is no axis of {cut_up}"
        if sum(out.shape[axes[0]] for out in node.outputs) != cut_up.shape[axes[0]]:
            return f"its outputs are not what {cut_up} consists of"
        return refuses_rescaling(node, [cut_up])

    constants = tuple(position for position in range(inputs) if position != data)

    @_moves(name, newest=newest, refuses=refuses, inputs=(inputs, inputs), outputs=None, constants=constants)
    def translate(graph: GraphBuilder, node: Node) -> None:
        cut_up = node.inputs[data]
        at = integers(node.inputs[axis])[0] % cut_up.ndim
        planes, value = graph.in_its_layout(cut_up)
        sizes = graph.constant(np.array([out.shape[at] for out in node.outputs], np.int64))
        along = graph.constant(np.int64(IN_PLANES[at] if planes else at))
        pieces = ov.variadic_split(value, along, sizes)
        for position, out in enumerate(node.outputs):
            graph.put_as(planes, out, pieces.output(position))


_split("SPLIT", data=1, axis=0, newest=4, inputs=2)
_split("SPLIT_V", data=0, axis=2, newest=2, inputs=3)


def _refuses_unpack(node: Node) -> str:
    axis, data = node.options(UnpackOptions).axis, node.inputs[0]
    axes = axes_of([axis], data.ndim)
    if not axes or data.shape[axes[0]] != len(node.outputs):
        return f"its axis {axis} does not cut {data} into {len(node.outputs)} pieces"
    return refuses_rescaling(node)


@_moves("UNPACK", newest=4, refuses=_refuses_unpack, outputs=None)
def _unpack(graph: GraphBuilder, node: Node) -> None:
    data = node.inputs[0]
    axis = graph.constant(np.int64(node.options(UnpackOptions).axis % data.ndim))
    pieces = ov.split(graph.value(data), axis, len(node.outputs))
    for position, out in enumerate(node.outputs):
        graph.put(out, graph.reshaped(pieces.output(position), out.shape))


def _refuses_pack(node: Node) -> str:
    axis = node.options(PackOptions).axis
    if not axes_of([axis], node.outputs[0].ndim):
        return f"its axis {axis} is not in {node.outputs[0]}"
    return refuses_rescaling(node, node.inputs)


@_moves("PACK", newest=2, refuses=_refuses_pack, inputs=(1, 4096))
def _pack(graph: GraphBuilder, node: Node) -> None:
    out = node.outputs[0]
    axis = node.options(PackOptions).axis % out.ndim
    shape = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    graph.put(out, ov.concat([graph.reshaped(graph.value(tensor), shape) for tensor in node.inputs], axis))


def _refuses_concatenation(node: Node) -> str:
    options = node.options(ConcatenationOptions)
    if not axes_of([options.axis], node.outputs[0].ndim):
        return f"its axis {options.axis} is not in {node.outputs[0]}"
    if options.fused_activation_function is not ActivationFunctionType.NONE and node.outputs[0].type not in FLOAT:
        return f"it is to clamp {node.outputs[0]}"
    return refuses_activation(options.fused_activation_function) or refuses_rescaling(node, node.inputs)


@_moves("CONCATENATION", newest=3, refuses=_refuses_concatenation, inputs=(1, 4096))
def _concatenation(graph: GraphBuilder, node: Node) -> None:
    options, out = node.options(ConcatenationOptions), node.outputs[0]
    axis = options.axis % out.ndim
    planes = out.ndim == 4 and graph.in_planes(node.inputs)
    values = [graph.planes(tensor) if planes else graph.value(tensor) for tensor in node.inputs]
    made = ov.concat(values, IN_PLANES[axis] if planes else axis)
    graph.put_as(planes, out, activated(made, options.fused_activation_function))


@_moves("BROADCAST_TO", newest=3, refuses=refuses_rescaling, inputs=(2, 2), constants=(1,))
def _broadcast_to(graph: GraphBuilder, node: Node) -> None:
    shape = graph.constant(np.array(node.outputs[0].shape, np.int64))
    graph.put(node.outputs[0], ov.broadcast(graph.value(node.inputs[0]), shape))


def _refuses_tile(node: Node) -> str:
    data, times = node.inputs[0], integers(node.inputs[1])
    if len(times) != data.ndim or min(times, default=1) < 1:
        return f"{times} does not say how often to repeat {data}"
    return refuses_rescaling(node)


@_moves("TILE", newest=3, refuses=_refuses_tile, inputs=(2, 2), constants=(1,))
def _tile(graph: GraphBuilder, node: Node) -> None:
    times = graph.constant(np.array(integers(node.inputs[1]), np.int64))
    graph.put(node.outputs[0], ov.tile(graph.value(node.inputs[0]), times))


def _refuses_gather(node: Node) -> str:
    """Return why positions are refused; those of the run time are not known, and other kernels check them."""
    options, (data, positions) = node.options(GatherOptions), node.inputs
    axes = axes_of([options.axis], data.ndim)
    if not axes or options.batch_dims:
        return f"its axis {options.axis} is not in {data}, or it has {options.batch_dims} batch dimensions"
    if not positions.size or positions.data.min() < 0 or positions.data.max() >= data.shape[axes[0]]:
        return f"not all of its positions are in {data}"
    return refuses_rescaling(node)


@_moves("GATHER", newest=4, refuses=_refuses_gather, inputs=(2, 2), constants=(1,))
def _gather(graph: GraphBuilder, node: Node) -> None:
    data, positions = node.inputs
    axis = graph.constant(np.int64(node.options(GatherOptions).axis % data.ndim))
    graph.put(node.outputs[0], ov.gather(graph.value(data), graph.constant(positions.data, np.int32), axis))


def _refuses_reverse(node: Node) -> str:
    data, axes = node.inputs[0], integers(node.inputs[1])
    return refuses_rescaling(node) if axes_of(axes, data.ndim) is not None else f"the axes {axes} are not all in {data}"


@_moves("REVERSE_V2", newest=3, refuses=_refuses_reverse, inputs=(2, 2), constants=(1,))
def _reverse(graph: GraphBuilder, node: Node) -> None:
    data = node.inputs[0]
    axes = axes_of(integers(node.inputs[1]), data.ndim) or []
    whole = [slice(size - 1, None, -1) if axis in axes else slice(0, size, 1) for axis, size in enumerate(data.shape)]
    _cut(graph, data, node.outputs[0], whole)


def _refuses_slice(node: Node) -> str:
    (data, begin), out = node.inputs[:2], node.outputs[0]
    starts = integers(begin)
    inside = len(starts) == data.ndim == out.ndim and all(
        start >= 0 and start + size <= length for start, size, length in zip(starts, out.shape, data.shape)
    )
    return refuses_rescaling(node) if inside else f"it does not begin inside {data}, at {starts}"


@_moves("SLICE", newest=6, refuses=_refuses_slice, inputs=(3, 3), constants=(1, 2))
def _slice(graph: GraphBuilder, node: Node) -> None:
    out, starts = node.outputs[0], integers(node.inputs[1])
    _cut(graph, node.inputs[0], out, [slice(start, start + size, 1) for start, size in zip(starts, out.shape)])


def _parts(node: Node) -> list[tuple[int, int, int]]:
    """Return (begin, end, stride) of each dimension of STRIDED_SLICE, as for Python slices."""
    options, data = node.options(StridedSliceOptions), node.inputs[0]
    parts = []
    for axis, (begin, end, stride) in enumerate(zip(*(integers(tensor) for tensor in node.inputs[1:]))):
        bit = 1 << axis
        if options.shrink_axis_mask & bit:
            start = begin % data.shape[axis] if -data.shape[axis] <= begin < data.shape[axis] else -1
            parts.append((start, start + 1, 1))
            continue
        first = None if options.begin_mask & bit else begin
        last = None if options.end_mask & bit else end
        parts.append(slice(first, last, stride).indices(data.shape[axis]))
    return parts + [(0, size, 1) for size in data.shape[len(parts) :]]


def _refuses_strided_slice(node: Node) -> str:
    options = node.options(StridedSliceOptions)
    if options.offset or options.ellipsis_mask or options.new_axis_mask:
        return "it has an offset, an ellipsis or a new axis"
    data, begins, ends, strides = node.inputs
    if not len(integers(begins)) == len(integers(ends)) == len(integers(strides)) <= data.ndim:
        return f"its {len(integers(begins))} beginnings, {len(integers(ends))} ends and strides do not fit {data}"
    if 0 in integers(strides):
        return "one of its strides is 0"
    if any(not 0 <= parts[0] < size for parts, size in zip(_parts(node), data.shape)):
        return f"nothing is left of {data}"
    return refuses_rescaling(node)


@_moves("STRIDED_SLICE", newest=8, refuses=_refuses_strided_slice, inputs=(4, 4), constants=(1, 2, 3))
def _strided_slice(graph: GraphBuilder, node: Node) -> None:
    _cut(graph, node.inputs[0], node.outputs[0], [slice(*part) for part in _parts(node)])


def _refuses_transpose(node: Node) -> str:
    data, order = node.inputs[0], integers(node.inputs[1])
    axes = axes_of(order, data.ndim)
    if axes is None or sorted(axes) != list(range(data.ndim)):
        return f"{order} is no order of the dimensions of {data}"
    return refuses_rescaling(node)


@_moves("TRANSPOSE", newest=6, refuses=_refuses_transpose, inputs=(2, 2), constants=(1,))
def _transpose(graph: GraphBuilder, node: Node) -> None:
    data = node.inputs[0]
    order = list(axes_of(integers(node.inputs[1]), data.ndim) or ())
    if order == [0, 3, 1, 2] and graph.in_planes([data]):
        graph.put(node.outputs[0], graph.planes(data))  # it is so already
        return
    graph.put(node.outputs[0], graph.transposed(graph.value(data), order))


def _refuses_edges(node: Node) -> str:
    """Return why the widths of a padding operator's borders are not supported, or PADV2's value; "" if they are."""
    data, widths = node.inputs[:2]
    filler = node.inputs[2] if len(node.inputs) == 3 else None
    if filler is not None and (filler.type is not data.type or filler.size != 1):
        return f"{filler} is no value to pad {data} with"
    if widths.shape != (data.ndim, 2) or min(integers(widths), default=0) < 0:
        return f"{integers(widths)} are no widths of a border of {data}"
    return ""


def _edges(graph: GraphBuilder, node: Node) -> tuple[bool, Value, Value, Value]:
    """Return whether NCHW is used, the value to pad, and the widths at the beginning and at the end of each axis."""
    planes, value = graph.in_its_layout(node.inputs[0])
    widths = integers(node.inputs[1])
    begin, end = widths[::2], widths[1::2]
    if planes:
        begin, end = ([numbers[axis] for axis in (0, 3, 1, 2)] for numbers in (begin, end))
    sides = (graph.constant(np.array(numbers, np.int64)) for numbers in (begin, end))
    return planes, value, *sides


@translates("PAD", newest=2, refuses=_refuses_edges, inputs=(2, 2), constants=(1,), layer_of_8_bits=True)
@translates("PADV2", newest=2, refuses=_refuses_edges, inputs=(3, 3), constants=(1, 2))
def _pad(graph: GraphBuilder, node: Node) -> None:
    planes, value, begin, end = _edges(graph, node)
    filler = node.inputs[2].data.reshape(()) if len(node.inputs) == 3 else 0
    graph.put_as(planes, node.outputs[0], ov.pad(value, begin, end, "constant", graph.constant(filler, np.float32)))


def _refuses_mirrors(node: Node) -> str:
    mode = node.options(MirrorPadOptions).mode
    if mode not in (MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC):
        return f"it has no mode {mode!r}"
    reason = _refuses_edges(node)
    if reason:
        return reason
    pads, shape = integers(node.inputs[1]), node.inputs[0].shape
    fits = all(pad <= shape[i // 2] - (mode is MirrorPadMode.REFLECT) for i, pad in enumerate(pads))
    return "" if fits else f"its border {pads} is wider than {node.inputs[0]}"


@translates("MIRROR_PAD", newest=2, refuses=_refuses_mirrors, inputs=(2, 2), constants=(1,), layer_of_8_bits=True)
def _mirror_pad(graph: GraphBuilder, node: Node) -> None:
    planes, value, begin, end = _edges(graph, node)
    mode = "reflect" if node.options(MirrorPadOptions).mode is MirrorPadMode.REFLECT else "symmetric"
    graph.put_as(planes, node.outputs[0], ov.pad(value, begin, end, mode))


def _blocks(name: str, make: Callable[..., Value], edges_are: str) -> None:
    """Register BATCH_TO_SPACE_ND or SPACE_TO_BATCH_ND.

    Args:
        name: the operator's name.
        make: creates the OpenVINO node, which needs a block size for every dimension.
        edges_are: the name of the third input in messages: "paddings" or "crops".
    """

    def refuses(node: Node) -> str:
        data, sizes, edges = node.inputs
        count = sizes.size
        if data.ndim != 4 or not 1 <= count <= 2 or edges.size != 2 * count:
            return f"it wants four dimensions and blocks of one or two, not {data}, {sizes} and {edges}"
        if min(integers(sizes)) < 1 or min(integers(edges)) < 0:
            return f"its blocks are {integers(sizes)}, its {edges_are} {integers(edges)}"
        return ""

    @translates(name, newest=4, refuses=refuses, inputs=(3, 3), constants=(1, 2))
    def translate(graph: GraphBuilder, node: Node) -> None:
        data, sizes, edges = node.inputs
        rest = [0] * (data.ndim - 1 - sizes.size)
        blocks = [1, *integers(sizes), *(1 for _ in rest)]
        begin, end = ([0, *integers(edges)[side::2], *rest] for side in (0, 1))
        numbers = (graph.constant(np.array(each, np.int64)) for each in (blocks, begin, end))
        graph.put(node.outputs[0], make(graph.value(data), *numbers))


_blocks("BATCH_TO_SPACE_ND", ov.batch_to_space, "crops")
_blocks("SPACE_TO_BATCH_ND", ov.space_to_batch, "paddings")


def _block_channels(name: str, make: Callable[..., Value], options_class: Any) -> None:
    """Register DEPTH_TO_SPACE or SPACE_TO_DEPTH, by OpenVINO's node and the class of options with the block size."""

    def refuses(node: Node) -> str:
        if node.inputs[0].ndim != 4:
            return f"it wants four dimensions, not {node.inputs[0]}"
        size = node.options(options_class).block_size
        return "" if size >= 1 else f"its blocks are of size {size}"

    @translates(name, refuses=refuses, layer_of_8_bits=True)
    def translate(graph: GraphBuilder, node: Node) -> None:
        made = make(graph.planes(node.inputs[0]), "blocks_first", node.options(options_class).block_size)
        graph.put_planes(node.outputs[0], made)


_block_channels("DEPTH_TO_SPACE", ov.depth_to_space, DepthToSpaceOptions)
_block_channels("SPACE_TO_DEPTH", ov.space_to_depth, SpaceToDepthOptions)
