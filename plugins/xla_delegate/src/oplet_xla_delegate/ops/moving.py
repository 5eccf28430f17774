"""Operators that move values: shapes, slices, joins."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from oplet import Node
from oplet.schema.enums import ActivationFunctionType, MirrorPadMode
from oplet.schema.options import (
    ConcatenationOptions,
    DepthToSpaceOptions,
    GatherOptions,
    MirrorPadOptions,
    OneHotOptions,
    PackOptions,
    SpaceToDepthOptions,
    StridedSliceOptions,
    UnpackOptions,
)
from oplet_xla_delegate.activations import activated, refuses_activation
from oplet_xla_delegate.tracing import Trace, inside
from oplet_xla_delegate.translators import FLOATS, MOVED, axes_of, integers, translates


@translates("RESHAPE", newest=2, inputs=(1, 2), types=MOVED, moves=True, constants=(1,), optional=(1,))
@translates("SQUEEZE", newest=2, types=MOVED, moves=True)
@translates("EXPAND_DIMS", newest=2, inputs=(2, 2), types=MOVED, moves=True, constants=(1,))
def _reshape(trace: Trace, node: Node, x: Any, *rest: Any) -> Any:
    return x.reshape(node.outputs[0].shape)


@translates("TRANSPOSE", newest=6, inputs=(2, 2), types=MOVED, moves=True, constants=(1,))
def _transpose(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    return x.transpose(axes_of(integers(node.inputs[1]), x.ndim))


@translates("BROADCAST_TO", newest=3, inputs=(2, 2), types=MOVED, moves=True, constants=(1,))
def _broadcast_to(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    return jnp.broadcast_to(x, node.outputs[0].shape)


@translates("FILL", newest=4, inputs=(2, 2), types=MOVED, moves=True, constants=(0,))
def _fill(trace: Trace, node: Node, _: Any, value: Any) -> Any:
    return jnp.broadcast_to(value.reshape(()), node.outputs[0].shape)


@translates("TILE", newest=3, inputs=(2, 2), types=MOVED, moves=True, constants=(1,))
def _tile(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    return jnp.tile(x, integers(node.inputs[1]))


@translates("REVERSE_V2", newest=3, inputs=(2, 2), types=MOVED, moves=True, constants=(1,))
def _reverse_v2(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    return jnp.flip(x, axes_of(integers(node.inputs[1]), x.ndim))


def _refuses_joining(node: Node) -> str:
    axes_of([node.options(ConcatenationOptions).axis], node.outputs[0].ndim)
    clamps = node.options(ConcatenationOptions).fused_activation_function is not ActivationFunctionType.NONE
    if clamps and node.outputs[0].type not in FLOATS:
        return f"it is to clamp {node.outputs[0]}"
    return refuses_activation(node, ConcatenationOptions)


@translates("CONCATENATION", newest=5, inputs=(1, 4096), types=MOVED, moves=True, refuses=_refuses_joining)
def _concatenation(trace: Trace, node: Node, *values: Any) -> Any:
    return activated(jnp.concatenate(values, node.options(ConcatenationOptions).axis), node, ConcatenationOptions)


@translates("PACK", newest=4, inputs=(1, 4096), types=MOVED, moves=True)
def _pack(trace: Trace, node: Node, *values: Any) -> Any:
    return jnp.stack(values, node.options(PackOptions).axis)


@translates("UNPACK", newest=4, outputs=None, types=MOVED, moves=True)
def _unpack(trace: Trace, node: Node, x: Any) -> Any:
    axis = node.options(UnpackOptions).axis % x.ndim
    return [lax.index_in_dim(x, place, axis, keepdims=False) for place in range(x.shape[axis])]


def _pieces(node: Node, x: Any, axis: int) -> list[Any]:
    bounds = np.cumsum([0] + [out.shape[axis] for out in node.outputs]).tolist()
    return [lax.slice_in_dim(x, begin, end, axis=axis) for begin, end in pairwise(bounds)]


@translates("SPLIT", newest=4, inputs=(2, 2), outputs=None, types=MOVED, moves=True, constants=(0,))
def _split(trace: Trace, node: Node, _: Any, x: Any) -> Any:
    return _pieces(node, x, axes_of(integers(node.inputs[0]), x.ndim)[0])


@translates("SPLIT_V", newest=2, inputs=(3, 3), outputs=None, types=MOVED, moves=True, constants=(1, 2))
def _split_v(trace: Trace, node: Node, x: Any, *rest: Any) -> Any:
    return _pieces(node, x, axes_of(integers(node.inputs[2]), x.ndim)[0])


def _refuses_slice(node: Node) -> str:
    data, begin, out = node.inputs[0], node.inputs[1], node.outputs[0]
    if not begin.is_constant:
        return ""
    starts = integers(begin)
    fits = len(starts) == data.ndim == out.ndim and all(
        start >= 0 and start + size <= length for start, size, length in zip(starts, out.shape, data.shape)
    )
    return "" if fits else f"it does not begin inside {data}, at {starts}"


@translates("SLICE", newest=6, inputs=(3, 3), types=MOVED, moves=True, constants=(2,), refuses=_refuses_slice)
def slice_(trace: Trace, node: Node, x: Any, begin: Any, _: Any) -> Any:
    """Return the outputs of SLICE as traced jax values; `begin` need not be constant."""
    if node.inputs[1].is_constant:
        starts = integers(node.inputs[1])
        return lax.slice(x, starts, [start + size for start, size in zip(starts, node.outputs[0].shape)])
    return lax.dynamic_slice(x, inside(begin, x.shape, node.outputs[0].shape), node.outputs[0].shape)


def _parts(node: Node) -> list[Any]:
    """Return an index of each dimension for a strided slice: slices, integers, None for new axes."""
    options, data = node.options(StridedSliceOptions), node.inputs[0]
    begins, ends, strides = (integers(tensor) for tensor in node.inputs[1:])
    if options.ellipsis_mask or options.offset or 0 in strides:
        raise ValueError("it has an ellipsis, an offset or a stride of 0")
    parts: list[Any] = []
    axis = 0
    for place, (begin, end, stride) in enumerate(zip(begins, ends, strides)):
        bit = 1 << place
        if options.new_axis_mask & bit:
            parts.append(None)
            continue
        if options.shrink_axis_mask & bit:
            if not -data.shape[axis] <= begin < data.shape[axis]:
                raise LookupError(f"{begin} is not in {data}")
            parts.append(begin % data.shape[axis])
        else:
            parts.append(slice(None if options.begin_mask & bit else begin, None if options.end_mask & bit else end, stride))
        axis += 1
    return parts


def _refuses_strided(node: Node) -> str:
    _parts(node)
    return ""


@translates("STRIDED_SLICE", newest=8, inputs=(4, 4), types=MOVED, moves=True, constants=(1, 2, 3), refuses=_refuses_strided)
def _strided_slice(trace: Trace, node: Node, x: Any, *rest: Any) -> Any:
    return x[tuple(_parts(node))]


def _refuses_gather(node: Node) -> str:
    data, positions = node.inputs
    axis = axes_of([node.options(GatherOptions).axis], data.ndim)[0]
    if positions.is_constant and (positions.data.min() < 0 or positions.data.max() >= data.shape[axis]):
        return f"not all of its positions are in {data}"
    return ""


@translates("GATHER", newest=7, inputs=(2, 2), types=MOVED, moves=True, refuses=_refuses_gather)
def _gather(trace: Trace, node: Node, x: Any, positions: Any) -> Any:
    options = node.options(GatherOptions)
    axis, batch = options.axis % x.ndim, options.batch_dims % max(positions.ndim, 1)
    if not batch:
        return jnp.take(x, positions, axis, mode="clip")
    lead = x.shape[:batch]
    flat, places = x.reshape((-1, *x.shape[batch:])), positions.reshape((-1, *positions.shape[batch:]))
    rows = jnp.arange(flat.shape[0], dtype=jnp.int32)
    moved = jnp.moveaxis(flat, axis - batch + 1, 1)
    taken = moved.at[rows.reshape((-1,) + (1,) * (places.ndim - 1)), places].get(mode="clip")
    order = list(range(places.ndim, places.ndim + axis - batch))
    order = [0, *order, *range(1, places.ndim), *range(places.ndim + axis - batch, taken.ndim)]
    made = taken.transpose(order)
    return made.reshape((*lead, *made.shape[1:]))


@translates("GATHER_ND", newest=5, inputs=(2, 2), types=MOVED, moves=True)
def _gather_nd(trace: Trace, node: Node, x: Any, positions: Any) -> Any:
    return x.at[tuple(jnp.moveaxis(positions, -1, 0))].get(mode="clip")


@translates("DYNAMIC_UPDATE_SLICE", newest=4, inputs=(3, 3), types=MOVED, moves=True)
def _dynamic_update_slice(trace: Trace, node: Node, x: Any, update: Any, begin: Any) -> Any:
    return lax.dynamic_update_slice(x, update, inside(begin, x.shape, update.shape))


@translates("ONE_HOT", inputs=(4, 4), types=MOVED, constants=(1,))
def _one_hot(trace: Trace, node: Node, places: Any, _: Any, on: Any, off: Any) -> Any:
    out = node.outputs[0]
    axis = node.options(OneHotOptions).axis % out.ndim
    shape = [1] * out.ndim
    shape[axis] = out.shape[axis]
    hot = jnp.expand_dims(places, axis) == jnp.arange(out.shape[axis], dtype=places.dtype).reshape(shape)
    return jnp.where(hot, on.reshape(()), off.reshape(()))


# Borders -------------------------------------------------------------------------------------------------------------------


def _widths(node: Node) -> list[tuple[int, int]]:
    widths = node.inputs[1].data
    if widths.shape != (node.inputs[0].ndim, 2) or widths.min() < 0:
        raise ValueError(f"{widths.tolist()} are no widths of a border of {node.inputs[0]}")
    return [(int(before), int(behind)) for before, behind in widths]


def _refuses_widths(node: Node) -> str:
    _widths(node)
    return ""


@translates("PAD", newest=4, inputs=(2, 2), types=MOVED, moves=True, constants=(1,), refuses=_refuses_widths)
def _pad(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    return jnp.pad(x, _widths(node), constant_values=x.dtype.type(node.outputs[0].zero_point))


@translates("PADV2", newest=4, inputs=(3, 3), types=MOVED, moves=True, constants=(1,), refuses=_refuses_widths)
def _padv2(trace: Trace, node: Node, x: Any, _: Any, filler: Any) -> Any:
    return lax.pad(x, filler.reshape(()), [(before, behind, 0) for before, behind in _widths(node)])


def _refuses_mirror(node: Node) -> str:
    mode, edge = node.options(MirrorPadOptions).mode, node.options(MirrorPadOptions).mode is MirrorPadMode.REFLECT
    if mode not in (MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC):
        return f"it has no mode {mode!r}"
    fits = all(max(width) <= size - edge for width, size in zip(_widths(node), node.inputs[0].shape))
    return "" if fits else f"its border is wider than {node.inputs[0]}"


@translates("MIRROR_PAD", newest=3, inputs=(2, 2), types=MOVED, moves=True, constants=(1,), refuses=_refuses_mirror)
def _mirror_pad(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    reflects = node.options(MirrorPadOptions).mode is MirrorPadMode.REFLECT
    return jnp.pad(x, _widths(node), mode="reflect" if reflects else "symmetric")


# Blocks --------------------------------------------------------------------------------------------------------------------


def _refuses_image(node: Node) -> str:
    return "" if node.inputs[0].ndim == 4 else f"it wants four dimensions, not {node.inputs[0]}"


@translates("DEPTH_TO_SPACE", newest=2, types=MOVED, moves=True, refuses=_refuses_image)
def _depth_to_space(trace: Trace, node: Node, x: Any) -> Any:
    size, (batch, height, width, depth) = node.options(DepthToSpaceOptions).block_size, x.shape
    blocks = x.reshape(batch, height, width, size, size, depth // (size * size)).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(node.outputs[0].shape)


@translates("SPACE_TO_DEPTH", newest=2, types=MOVED, moves=True, refuses=_refuses_image)
def _space_to_depth(trace: Trace, node: Node, x: Any) -> Any:
    size, (batch, height, width, depth) = node.options(SpaceToDepthOptions).block_size, x.shape
    blocks = x.reshape(batch, height // size, size, width // size, size, depth).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(node.outputs[0].shape)


def _blocks(node: Node) -> tuple[list[int], list[tuple[int, int]]]:
    sizes, edges = integers(node.inputs[1]), integers(node.inputs[2])
    if min(sizes) < 1 or min(edges) < 0 or len(edges) != 2 * len(sizes):
        raise ValueError(f"its blocks are {sizes}, its edges {edges}")
    return sizes, list(zip(edges[::2], edges[1::2]))


@translates("SPACE_TO_BATCH_ND", newest=4, inputs=(3, 3), types=MOVED, moves=True, constants=(1, 2))
def _space_to_batch_nd(trace: Trace, node: Node, x: Any, *rest: Any) -> Any:
    sizes, edges = _blocks(node)
    left = x.ndim - 1 - len(sizes)
    x = jnp.pad(x, [(0, 0), *edges, *[(0, 0)] * left], constant_values=x.dtype.type(node.outputs[0].zero_point))
    split_shape = [x.shape[0]]
    for length, size in zip(x.shape[1:], sizes):
        split_shape += [length // size, size]
    count = len(sizes)
    blocks = x.reshape((*split_shape, *x.shape[1 + count :]))
    order = [2 * place + 2 for place in range(count)] + [0] + [2 * place + 1 for place in range(count)]
    return blocks.transpose([*order, *range(2 * count + 1, blocks.ndim)]).reshape(node.outputs[0].shape)


@translates("BATCH_TO_SPACE_ND", newest=4, inputs=(3, 3), types=MOVED, moves=True, constants=(1, 2))
def _batch_to_space_nd(trace: Trace, node: Node, x: Any, *rest: Any) -> Any:
    sizes, edges = _blocks(node)
    count, batch = len(sizes), x.shape[0] // int(np.prod(sizes))
    blocks = x.reshape((*sizes, batch, *x.shape[1:]))
    order = [count]
    for place in range(count):
        order += [count + 1 + place, place]
    merged = blocks.transpose([*order, *range(2 * count + 1, blocks.ndim)])
    merged = merged.reshape((batch, *[size * length for size, length in zip(sizes, x.shape[1:])], *x.shape[1 + count :]))
    parts = [slice(before, size - behind) for (before, behind), size in zip(edges, merged.shape[1:])]
    places = (slice(None), *parts)
    return merged[places]
