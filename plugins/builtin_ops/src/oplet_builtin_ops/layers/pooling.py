"""Pooling: a window slides over height and width of a map and is reduced to one value.

Windows are reduced along one axis after the other: first rows, in k_h - 1 passes, then columns, in k_w - 1 passes, in place of k_h
* k_w passes over all taps. Taps outside of the map (SAME padding) are left out, so that no padded copy is made.

Numerics: tflite/kernels/pooling.cc, tflite/kernels/internal/reference/pooling.h and integer_ops/pooling.h
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.activations import activation_range, float_activation_range
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.axes import along
from oplet.kernels.fixed_point import clip, quantized_range
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.windows import Axis, window_axis, windows_in
from oplet.schema.enums import Padding
from oplet.schema.options import Pool2DOptions
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers import MANY_TAPS

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.program import Call

__all__ = ["TYPES"]

#: Bytes of the number of a window's taps, as an integer and as a float.
_COUNT_BYTES = 16

TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)


def _taps(axis: Axis) -> range:
    """Return the window positions (taps) along an axis that fall inside the map for at least one output."""
    return range(max(0, axis.before - (axis.out - 1) * axis.stride), min(axis.filter, axis.before + axis.size))


def _full_taps(axis: Axis) -> range:
    """Return the window positions (taps) along an axis that fall inside the map for every output."""
    taps = _taps(axis)
    first = max(taps.start, axis.before)
    return range(first, max(first, min(taps.stop, axis.before + axis.size - (axis.out - 1) * axis.stride)))


def _places(axis: Axis, tap: int) -> tuple[slice, slice]:
    """Return, for one tap, the slice of outputs for which it lies inside the map, and the slice of inputs that they read."""
    low = max(0, -((tap - axis.before) // axis.stride))
    high = max(low, min(axis.out, -((tap - axis.before - axis.size) // axis.stride)))
    start = low * axis.stride - axis.before + tap
    return slice(low, high), slice(start, start + max(0, (high - low - 1) * axis.stride + 1), axis.stride)


def _counts(axis: Axis) -> Array:
    """Count the taps along an axis that lie inside the map (not in the padding), for each output."""
    start = np.arange(axis.out) * axis.stride - axis.before
    return np.minimum(start + axis.filter, axis.size) - np.maximum(start, 0)


def _window_counts(rows: Axis, columns: Axis) -> Array:
    """Count the taps of each window that lie inside the map (not in the padding)."""
    charge(_COUNT_BYTES * (rows.out + columns.out + rows.out * columns.out))
    return np.multiply.outer(_counts(rows), _counts(columns))[..., None]


def _prepare(context: Context, node: Node) -> tuple[Axis, Axis]:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_same_type(source, output)
    ensure_type(source, *TYPES)
    ensure(source.ndim == 4, lambda: f"{source} must have 4 dimensions.")
    options = node.options(Pool2DOptions)
    rows = _axis("height", options.padding, source.shape[1], options.filter_height, options.stride_h)
    columns = _axis("width", options.padding, source.shape[2], options.filter_width, options.stride_w)
    if windows_in(source.shape[2], columns.filter, columns.stride, options.padding) < 0:
        rows = rows._replace(out=0, before=0)  # as LiteRT has it where the width lacks two strides or more
    context.resize_tensor(output, (source.shape[0], rows.out, columns.out, source.shape[3]))
    return rows, columns


def _axis(name: str, padding: Padding, size: int, filter: int, stride: int) -> Axis:
    """Return the windows along an axis; zero windows if the map is empty or smaller than the window, as LiteRT allows."""
    if filter > 0 and stride > 0 and windows_in(size, filter, stride, padding) <= 0:
        return Axis(size, filter, stride, 1, 0, 0)
    return window_axis(name, padding, size, filter, stride)


def _fold(ufunc: Any, identity: float, source: Array, target: Array, position: int, axis: Axis) -> Iterator[Call]:
    """Yield numpy calls that reduce `source` along one axis into `target`, tap by tap, or window by window if windows are long."""
    taps, full = _taps(axis), _full_taps(axis)
    if len(taps) > max(MANY_TAPS, axis.out):
        for number in range(axis.out):
            start = number * axis.stride - axis.before
            window = slice(max(0, start), min(start + axis.filter, axis.size))
            yield ufunc.reduce, (source[along(position, window)], position, target.dtype, target[along(position, number)])
        return

    def seen(tap: int) -> tuple[Array, Array]:
        outputs, inputs = _places(axis, tap)
        return target[along(position, outputs)], source[along(position, inputs)]

    # Taps that all outputs have come first: the first one initializes the target.
    if len(full) >= 2:
        yield partial(ufunc, out=target, dtype=target.dtype), (seen(full[0])[1], seen(full[1])[1])
    elif full:
        yield np.copyto, (target, seen(full[0])[1])
    else:
        yield target.fill, (identity,)
    for tap in chain(full[2:], range(taps.start, full.start), range(full.stop, taps.stop)):
        part, values = seen(tap)
        yield partial(ufunc, out=part), (part, values)


def _passes(
    ufunc: Any, identity: float, node: Node, rows: Axis, columns: Axis, target: Array, source: Array | None = None
) -> Iterator[Call]:
    """Yield numpy calls that reduce every window into `target`: rows first, into the first temporary, then columns.

    Args:
        ufunc: the reduction.
        identity: the value that changes no other one in the reduction.
        node: the node.
        rows: the windows along the height.
        columns: the windows along the width.
        target: receives the result.
        source: the array to reduce; the input unless given.
    """
    if source is None:
        source = node.inputs[0].data
    if not target.size:
        return
    if rows.out == columns.out == 1 and len(_taps(rows)) == rows.size and len(_taps(columns)) == columns.size:
        batch, height, width, channels = source.shape
        flat = source.reshape(batch, height * width, channels)
        yield ufunc.reduce, (flat, 1, target.dtype, target.reshape(batch, channels))
    elif rows.filter == 1:
        yield from _fold(ufunc, identity, source[:, :: rows.stride], target, 2, columns)
    elif columns.filter == 1:
        yield from _fold(ufunc, identity, source[:, :, :: columns.stride], target, 1, rows)
    else:
        folded = node.temporaries[0].data
        yield from _fold(ufunc, identity, source, folded, 1, rows)
        yield from _fold(ufunc, identity, folded, target, 2, columns)


def _add_folded_rows(context: Context, node: Node, rows: Axis, type: TensorType) -> None:
    batch, _, width, channels = node.inputs[0].shape
    context.add_temporary(node, (batch, rows.out, width, channels), type)


def _clamp(node: Node, array: Array) -> list[Call]:
    """Return the numpy call of the fused activation's clamp; empty if there is nothing to clamp."""
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
    return [(clip, (array, low, high, array))]


def prepare_max(context: Context, node: Node) -> None:
    """Check a MAX_POOL_2D node and set its output's shape."""
    node.prepared = rows, _ = _prepare(context, node)
    _add_folded_rows(context, node, rows, node.inputs[0].type)


def bind_max(context: Context, node: Node) -> Thunk:
    """Return the function that runs MAX_POOL_2D."""
    from oplet_builtin_ops.layers.program import run_program

    rows, columns = node.prepared
    output = node.outputs[0].data
    lowest = np.finfo(output.dtype).min if output.dtype.kind == "f" else np.iinfo(output.dtype).min
    return run_program(lambda: chain(_passes(np.maximum, lowest, node, rows, columns, output), _clamp(node, output)))


def prepare_average(context: Context, node: Node) -> None:
    """Check an AVERAGE_POOL_2D node and set its output's shape."""
    node.prepared = rows, columns = _prepare(context, node)
    source, output = node.inputs[0], node.outputs[0]
    if source.type == TensorType.FLOAT32:
        _add_folded_rows(context, node, rows, TensorType.FLOAT32)
        return
    # Sums of integers, and their rounded quotients, are exact in a float that can hold the largest sum.
    largest = max(-np.iinfo(source.dtype).min, np.iinfo(source.dtype).max) * (len(_taps(rows)) * len(_taps(columns)) + 1)
    wide = TensorType.FLOAT32 if largest < 2**24 else TensorType.FLOAT64
    _add_folded_rows(context, node, rows, wide)
    context.add_temporary(node, output.shape, wide)
    context.add_temporary(node, output.shape, wide)


def bind_average(context: Context, node: Node) -> Thunk:
    """Return the function that runs AVERAGE_POOL_2D."""
    from oplet_builtin_ops.layers.program import convert, run_program

    rows, columns = node.prepared
    output = node.outputs[0].data
    counts = _window_counts(rows, columns)
    if counts.size and (counts == counts.flat[0]).all():
        counts = counts[:1, :1]
    if output.dtype.kind == "f":
        finish: list[Call] = [(np.divide, (output, counts.astype(output.dtype), output)), *_clamp(node, output)]
        return run_program(lambda: chain(_passes(np.add, 0, node, rows, columns, output), finish))

    sums, halves = node.temporaries[1].data, node.temporaries[2].data
    half, counts = (counts // 2).astype(sums.dtype), counts.astype(sums.dtype)
    # Halves are rounded away from zero.
    finish = [
        (np.copysign, (half, sums, halves)),
        (np.add, (sums, halves, sums)),
        (np.divide, (sums, counts, sums)),
        (np.trunc, (sums, sums)),
        *_clamp(node, sums),
        (convert, (output, sums)),
    ]
    return run_program(lambda: chain(_passes(np.add, 0, node, rows, columns, sums), finish))


def prepare_l2(context: Context, node: Node) -> None:
    """Check an L2_POOL_2D node and set its output's shape."""
    node.prepared = rows, _ = _prepare(context, node)
    # LiteRT has no quantized form of it.
    ensure_type(node.inputs[0], TensorType.FLOAT32)
    _add_folded_rows(context, node, rows, TensorType.FLOAT32)
    context.add_temporary(node, node.inputs[0].shape, TensorType.FLOAT32)


def bind_l2(context: Context, node: Node) -> Thunk:
    """Return the function that runs L2_POOL_2D."""
    from oplet_builtin_ops.layers.program import run_program

    rows, columns = node.prepared
    source, output, squares = node.inputs[0].data, node.outputs[0].data, node.temporaries[1].data
    counts = _window_counts(rows, columns).astype(np.float32)
    square: list[Call] = [(np.square, (source, squares))]
    finish: list[Call] = [(np.divide, (output, counts, output)), (np.sqrt, (output, output)), *_clamp(node, output)]
    return run_program(lambda: chain(square, _passes(np.add, 0, node, rows, columns, output, squares), finish))


AVERAGE_POOL_2D = takes_halves(Registration(prepare=prepare_average, bind=bind_average, pure=True, types=TYPES))
MAX_POOL_2D = takes_halves(Registration(prepare=prepare_max, bind=bind_max, pure=True, types=TYPES))
L2_POOL_2D = Registration(prepare=prepare_l2, bind=bind_l2, pure=True, types=(TensorType.FLOAT32,))
