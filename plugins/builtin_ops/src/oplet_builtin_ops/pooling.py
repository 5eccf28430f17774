"""The pools: a window slides over the height and the width of a map, and each window becomes one value.

Windows are folded one axis after the other: first whole rows, k_h - 1 passes, then columns, k_w - 1 passes, instead of
k_h * k_w passes over all taps. A tap outside the map (SAME padding) is left out, so no padded copy is made.

Numerics: tflite/kernels/pooling.cc, tflite/kernels/internal/reference/pooling.h and integer_ops/pooling.h
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet.schema.enums import Padding
from oplet.schema.options import Pool2DOptions
from oplet_builtin_ops.fixed_point import activation_range, clip, float_activation_range, quantized_range
from oplet_builtin_ops.shapes import Array, Thunk, along, ensure_operands, ensure_same_type, run_all

__all__ = ["Axis", "bind_average", "bind_max", "prepare_average", "prepare_max"]

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)

#: Where one tap of the window falls: the outputs that have it inside the map, and the inputs that they see there.
Tap = tuple[slice, slice]


class Axis(NamedTuple):
    """One of the two axes that a window slides along."""

    length: int
    outputs: int
    filter: int
    stride: int
    padding: int

    @property
    def taps(self) -> list[Tap]:
        """The taps that fall into the map for some output."""
        taps = []
        first = max(0, self.padding - (self.outputs - 1) * self.stride)
        for k in range(first, min(self.filter, self.padding + self.length)):
            low = max(0, -((k - self.padding) // self.stride))
            high = min(self.outputs, -((k - self.padding - self.length) // self.stride))
            if low < high:
                start = low * self.stride - self.padding + k
                taps.append((slice(low, high), slice(start, start + (high - low - 1) * self.stride + 1, self.stride)))
        return taps

    @property
    def counts(self) -> Array:
        """How many taps of each output are inside the map."""
        start = np.arange(self.outputs) * self.stride - self.padding
        return np.minimum(start + self.filter, self.length) - np.maximum(start, 0)


def _axis(name: str, length: int, filter: int, stride: int, padding: Padding) -> Axis:
    ensure(filter > 0, f"filter_{name} is {filter} and must be above zero.")
    ensure(stride > 0, f"stride_{name} is {stride} and must be above zero.")
    if padding == Padding.SAME:
        outputs = -(-length // stride)
        return Axis(length, outputs, filter, stride, max((outputs - 1) * stride + filter - length, 0) // 2)
    ensure(filter <= length, f"filter_{name} is {filter}, larger than the input's {length}, and the padding is VALID.")
    return Axis(length, (length - filter) // stride + 1, filter, stride, 0)


def _prepare(context: Context, node: Node) -> tuple[Axis, Axis]:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_same_type(source, output)
    ensure_type(source, *_TYPES)
    ensure(source.ndim == 4, f"{source} must have 4 dimensions.")
    options = node.options(Pool2DOptions)
    rows = _axis("height", source.shape[1], options.filter_height, options.stride_h, options.padding)
    columns = _axis("width", source.shape[2], options.filter_width, options.stride_w, options.padding)
    context.resize_tensor(output, (source.shape[0], rows.outputs, columns.outputs, source.shape[3]))
    return rows, columns


def _fold(ufunc: Any, identity: float, source: Array, target: Array, position: int, axis: Axis) -> list[Thunk]:
    """The passes that fold the taps along one axis of `source` into `target`."""

    everywhere = slice(0, axis.outputs)
    # Taps that every output has come first: they set the target, which the others add to.
    taps = sorted(axis.taps, key=lambda tap: tap[0] != everywhere)
    full = sum(outputs == everywhere for outputs, _ in taps)
    views = [(target[along(position, outputs)], source[along(position, inputs)]) for outputs, inputs in taps]
    passes: list[Thunk] = []
    if full >= 2:
        passes.append(partial(ufunc, views[0][1], views[1][1], target, dtype=target.dtype))
    elif full == 1:
        passes.append(partial(np.copyto, target, views[0][1]))
    else:
        passes.append(partial(target.fill, identity))
    return passes + [partial(ufunc, seen, tap, seen) for seen, tap in views[min(full, 2) :]]


def _passes(ufunc: Any, identity: float, node: Node, rows: Axis, columns: Axis, target: Array) -> list[Thunk]:
    """The passes that fold every window of the input into `target`; the first temporary holds the folded rows."""
    source = node.inputs[0].data
    if not target.size:
        return []
    if rows.outputs == columns.outputs == 1 and len(rows.taps) == rows.length and len(columns.taps) == columns.length:
        batch, height, width, channels = source.shape
        flat = source.reshape(batch, height * width, channels)
        return [partial(ufunc.reduce, flat, 1, target.dtype, target.reshape(batch, channels))]
    if rows.filter == 1:
        return _fold(ufunc, identity, source[:, :: rows.stride], target, 2, columns)
    if columns.filter == 1:
        return _fold(ufunc, identity, source[:, :, :: columns.stride], target, 1, rows)
    folded = node.temporaries[0].data
    return _fold(ufunc, identity, source, folded, 1, rows) + _fold(ufunc, identity, folded, target, 2, columns)


def _add_folded_rows(context: Context, node: Node, rows: Axis, type: TensorType) -> None:
    batch, _, width, channels = node.inputs[0].shape
    context.add_temporary(node, (batch, rows.outputs, width, channels), type)


def _clamp(node: Node, array: Array) -> list[Thunk]:
    """The pass of the fused activation, none if it has nothing to do; LiteRT's pools know activations as ranges only."""
    output, activation = node.outputs[0], node.options(Pool2DOptions).fused_activation_function
    bounds: tuple[Any, Any]
    if output.type == TensorType.FLOAT32:
        bounds = float_activation_range(activation)
        if np.isinf(bounds).all():
            return []
    else:
        bounds = activation_range(activation, output.type, output.scale, output.zero_point)
        if array.dtype == output.dtype and bounds == quantized_range(output.type):
            return []
    low, high = (np.array(bound, array.dtype) for bound in bounds)
    return [partial(clip, array, low, high, array)]


def prepare_max(context: Context, node: Node) -> None:
    """Check a maximum pool and size its output."""
    node.prepared = rows, _ = _prepare(context, node)
    _add_folded_rows(context, node, rows, node.inputs[0].type)


def bind_max(context: Context, node: Node) -> Thunk:
    """The thunk of a maximum pool."""
    rows, columns = node.prepared
    output = node.outputs[0].data
    lowest = np.finfo(output.dtype).min if output.dtype.kind == "f" else np.iinfo(output.dtype).min
    passes = _passes(np.maximum, lowest, node, rows, columns, output)
    return run_all(passes + _clamp(node, output))


def prepare_average(context: Context, node: Node) -> None:
    """Check an average pool and size its output."""
    node.prepared = rows, columns = _prepare(context, node)
    source, output = node.inputs[0], node.outputs[0]
    if source.type == TensorType.FLOAT32:
        _add_folded_rows(context, node, rows, TensorType.FLOAT32)
        return
    # Sums of integers, and their rounded quotients, are exact in a float that can hold the largest sum.
    largest = max(-np.iinfo(source.dtype).min, np.iinfo(source.dtype).max) * (len(rows.taps) * len(columns.taps) + 1)
    wide = TensorType.FLOAT32 if largest < 2**24 else TensorType.FLOAT64
    _add_folded_rows(context, node, rows, wide)
    context.add_temporary(node, output.shape, wide)
    context.add_temporary(node, output.shape, wide)


def bind_average(context: Context, node: Node) -> Thunk:
    """The thunk of an average pool."""
    rows, columns = node.prepared
    output = node.outputs[0].data
    counts = np.multiply.outer(rows.counts, columns.counts)[..., None]
    if counts.size and (counts == counts.flat[0]).all():
        counts = counts[:1, :1]
    if output.dtype.kind == "f":
        passes = _passes(np.add, 0, node, rows, columns, output)
        passes.append(partial(np.divide, output, counts.astype(output.dtype), output))
        return run_all(passes + _clamp(node, output))

    sums, halves = node.temporaries[1].data, node.temporaries[2].data
    half, counts = (counts // 2).astype(sums.dtype), counts.astype(sums.dtype)
    passes = _passes(np.add, 0, node, rows, columns, sums)
    # Halves are rounded away from zero.
    passes += [
        partial(np.copysign, half, sums, halves),
        partial(np.add, sums, halves, sums),
        partial(np.divide, sums, counts, sums),
        partial(np.trunc, sums, sums),
        *_clamp(node, sums),
        partial(np.copyto, output, sums, casting="unsafe"),
    ]
    return run_all(passes)
